import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from felling import axed
from loopback import clis
from loopback.model import Model, running
from support import Box


def pytest_configure() -> None:
    """A background job or nohup starts with Ctrl-C or a hang-up ignored, and so would every program that is tested."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """An empty git repository."""
    return Box(tmp_path / "notes-service", tmp_path / "home")


@pytest.fixture
def project(box: Box, monkeypatch: pytest.MonkeyPatch) -> Box:
    """A repository with a project in it, committed, and this process standing in it."""
    box.write("README.md", "notes\n")
    box.write("agentd/config.toml", "schema_version = 1\n")
    box.commit("start")
    monkeypatch.chdir(box.root)
    for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, box.env[name])
    return box


@pytest.fixture
def quick(project: Box) -> Box:
    """The same, for commands whose agents use tools that are not the point: their server is the quick one."""
    project.program = axed()
    return project


@pytest.fixture(scope="session")
def model() -> Iterator[Model]:
    """The scripted model; whoever talks to it has no other network."""
    clis.isolate()
    with running() as model:
        yield model


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A real CLI that was not there is told once, where nobody can miss it."""
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", []) if report.longrepr]
    missing = sorted({reason for reason in reasons if clis.MISSING in reason})
    if missing:
        terminalreporter.write_sep("!", f"{len(reasons)} tests skipped. {missing[0]}", red=True, bold=True)
