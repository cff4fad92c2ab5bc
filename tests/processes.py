"""Agents for the tests of process.run: small programs that are found by a variable, wherever they hide."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentd.agents import process, reaper, streams
from agentd.agents.process import ProcessLimits, ProcessOutcome
from agentd.agents.streams import LineListener
from program import PATIENCE, environment

if TYPE_CHECKING:
    import pytest  # run_process.py imports this module and is to stay small

ROOMY = ProcessLimits(wall_secs=PATIENCE, idle_secs=PATIENCE, output_bytes=1 << 40)

IGNORE_TERM = "import os, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
ASK_FOR_MY_END = "os.kill(os.getppid(), signal.SIGTERM)\n"  # of the reaper: quicker and surer than a clock
STUBBORN = IGNORE_TERM + "print('up', os.getpid(), os.getppid(), flush=True)\ntime.sleep(600)\n"
DAEMON = """
ready, told = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print('daemon up', flush=True)
        os.write(told, b'.')
        time.sleep(600)
    os._exit(0)
os.wait()
os.read(ready, 1)
"""


def until_there(name: str) -> str:
    """Words of a shell that waits for a file."""
    return f"while [ ! -e {name} ]; do sleep 0.02; done"


def python(code: str) -> list[str]:
    """A quick start, with nothing of the caller's."""
    return [sys.executable, "-I", "-S", "-c", code]


@dataclass
class Stage:
    """Where agents are started; `left` finds whoever is still there of them."""

    folder: Path
    name: str = field(default_factory=lambda: f"agentd-test-{uuid.uuid4().hex}")
    heard: list[tuple[str, bytes, int]] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "STAGE": self.name}

    def run(
        self,
        argv: list[str],
        *,
        stdin: bytes = b"",
        bounds: ProcessLimits = ROOMY,
        hear: LineListener | None = None,
        lock: int | None = None,
        mark: Path | None = None,
    ) -> ProcessOutcome:
        try:
            return process.run_process(
                argv,
                env=self.env,
                cwd=self.folder,
                stdin=stdin,
                bounds=bounds,
                on_line=hear or (lambda *line: self.heard.append(line)),
                lock=lock,
                mark=mark,
            )
        finally:
            assert self.left() == {}, "the run is over, but not all are gone"

    def left(self) -> dict[int, str]:
        """Command lines by process id; a zombie has no environment, so it does not count."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if f"STAGE={self.name}".encode() in Path("/proc", pid, "environ").read_bytes():
                    found[int(pid)] = Path("/proc", pid, "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return found

    @property
    def lines(self) -> list[bytes]:
        """What it said on stdout."""
        return [line for stream, line, _ in self.heard if stream == "out"]

    @contextlib.contextmanager
    def apart(self, argv: list[str], **options: Any) -> Iterator["Apart"]:
        """process.run in a process of its own, which can be interrupted and killed."""
        env = {**environment(self.folder / "home"), "STAGE": self.name}
        command = [
            sys.executable,
            str(Path(__file__).with_name("run_process.py")),
            json.dumps({"argv": argv, **options}),
        ]
        with subprocess.Popen(
            command, cwd=self.folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        ) as started:
            try:
                yield Apart(started)
            finally:
                started.kill()
                started.wait()
                self._cut_grace_short()
                wait_until(lambda: not self.left(), "all are gone")

    def _cut_grace_short(self) -> None:
        """After a test that failed, nobody waits for a reaper with minutes of patience."""
        for pid, words in self.left().items():
            if "patient_reaper.py" in words:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)


@dataclass
class Apart:
    process: subprocess.Popen[bytes]

    def next(self) -> Any:
        """The next thing it tells."""
        assert self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        assert ready, "it says nothing"
        line = self.process.stdout.readline()
        assert line, "it has ended without a word"
        return json.loads(line)


class Clock:
    """The time of process.run: it stands still until it is started, so that a busy machine cannot use it up."""

    sleep = staticmethod(time.sleep)

    def __init__(self, patch: "pytest.MonkeyPatch") -> None:
        self._started: float | None = None
        self._forward = 0.0
        self._start_when: Callable[[], bool] = lambda: False
        patch.setattr(process, "time", self)
        patch.setattr(streams, "time", self)

    def start(self) -> None:
        if self._started is None:
            self._started = time.monotonic()

    def start_when(self, is_so: Callable[[], bool]) -> None:
        self._start_when = is_so

    def forward(self, seconds: float) -> None:
        self._forward += seconds

    def started_by(self, stage: Stage) -> LineListener:
        """What is heard goes to the stage; the first line starts the clock."""

        def hear(stream: streams.Stream, line: bytes, missing: int) -> None:
            stage.heard.append((stream, line, missing))
            self.start()

        return hear

    def monotonic(self) -> float:
        if self._started is None and self._start_when():
            self.start()
        return self._forward + (0.0 if self._started is None else time.monotonic() - self._started)


def wait_long_for_the_end(patch: "pytest.MonkeyPatch") -> None:
    """On a busy machine the end of many processes takes longer than agentd waits for it."""
    patch.setattr(process, "_CLEANUP_SECS", PATIENCE)
    patch.setattr(process, "_KILL_SECS", PATIENCE)


def write_patient_reaper(folder: Path, grace: float) -> str:
    """The reaper with another time between TERM and KILL; its path."""
    text = Path(reaper.__file__).read_text()
    assert "\nGRACE = 1.0 " in text
    path = folder.absolute() / "patient_reaper.py"
    path.write_text(text.replace("\nGRACE = 1.0 ", f"\nGRACE = {grace} "))
    return str(path)


def give_much_grace(patch: "pytest.MonkeyPatch", folder: Path) -> None:
    """For an agent that uses its grace, and would not get far in a second on a busy machine."""
    patch.setattr(reaper, "__file__", write_patient_reaper(folder, PATIENCE))
    patch.setattr(reaper, "GRACE", PATIENCE)


def wait_until(is_so: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, f"never came: {what}"
        time.sleep(0.01)
