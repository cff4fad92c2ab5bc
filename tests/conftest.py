import gc
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import exhaustive as exhaustively
from exhaustive import Exhaustive
from loopback import clis
from loopback.model import Model, running
from program import server
from scenario import Scenario

MEMORY = 4 << 30  # bytes that a run may need for its temporary folders


def pytest_configure(config: pytest.Config) -> None:
    """A background job or nohup starts with Ctrl-C or a hang-up ignored, and so would every program that is tested."""
    use_memory(config)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    exhaustively.set_up()


def use_memory(config: pytest.Config) -> None:
    """Temporary folders in memory where there is room: agentd flushes what it writes, and a disk takes its time."""
    memory = Path("/dev/shm")
    if config.option.basetemp or hasattr(config, "workerinput") or not os.access(memory, os.W_OK):
        return
    for left in memory.glob("agentd-tests-*"):
        if not Path("/proc", left.name.rpartition("-")[2]).exists():
            shutil.rmtree(left, ignore_errors=True)  # of a run that failed, kept until now to be looked at
    if shutil.disk_usage(memory).free > MEMORY:
        config.option.basetemp = memory / f"agentd-tests-{os.getpid()}"


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    folder = session.config.option.basetemp
    if exitstatus == 0 and folder and Path(folder).name == f"agentd-tests-{os.getpid()}":
        shutil.rmtree(folder, ignore_errors=True)


def pytest_report_header() -> str:
    part = "all of" if exhaustively.IS_LONG else "a sample of"
    return f"{part} the exhaustive tests, AGENTD_TEST_SEED={exhaustively.SEED}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if rest := exhaustively.select(items):
        config.hook.pytest_deselected(items=rest)


def pytest_collection_finish() -> None:
    """Thousands of collected tests stay to the end: no search for garbage needs to look at them."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup() -> None:
    exhaustively.skip_after_end()


@pytest.fixture
def exhaustive() -> Exhaustive:
    """A test that uses it tries a sample of its points, and in `make test-long` all of them."""
    return Exhaustive()


@pytest.fixture
def box(tmp_path: Path) -> Scenario:
    """An empty git repository."""
    return Scenario(tmp_path / "notes-service", tmp_path / "home")


@pytest.fixture
def project(box: Scenario, monkeypatch: pytest.MonkeyPatch) -> Scenario:
    """A repository with a project in it, committed, and this process standing in it."""
    box.with_project().enter(monkeypatch)
    return box


@pytest.fixture
def forked_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """MCP servers of agents that are called in this process come from the fork server."""
    monkeypatch.setattr(sys, "executable", server().python)


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
