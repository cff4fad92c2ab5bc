import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck

import exhaustive as exhaustively
from exhaustive import Exhaustive
from loopback import clis
from loopback.model import Model, running
from support import Box


def pytest_configure() -> None:
    """A background job or nohup starts with Ctrl-C or a hang-up ignored, and so would every program that is tested.

    Hypothesis must not fail a test because the machine is busy.
    """
    hypothesis.settings.register_profile("agentd", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    hypothesis.settings.load_profile("agentd")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    exhaustively.set_up()


def pytest_report_header() -> str:
    part = "all of" if exhaustively.IS_LONG else "a sample of"
    return f"{part} the exhaustive tests, AGENTD_TEST_SEED={exhaustively.SEED}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if rest := exhaustively.select(items):
        config.hook.pytest_deselected(items=rest)


def pytest_runtest_setup() -> None:
    exhaustively.skip_after_end()


@pytest.fixture
def exhaustive() -> Exhaustive:
    """A test that uses it tries a sample of its points, and in `make test-long` all of them."""
    return Exhaustive()


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
