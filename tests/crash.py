"""Processes that are killed: at a write, at an event they print, or at any operation on files.

`kill_at_write` and `kill_at_event` run the whole program, `run_in_fork` runs a function in a fork of the test. All of
them send a real SIGKILL, and return when nothing of the killed run is left.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from agentd.change.folder import STATE_FILE, document_hash, read_state
from agentd.domain.terms import StepStatus
from agentd.storage import files, locks
from plans import GREETING_ID, SIGN_IN, SIGN_IN_ID
from playbooks import FOLDER, HANG, PASS, Steps, edit_spec_by_tool, finding, report, say, small_plan_steps, usage
from processes import wait_until
from program import CrashPoint, Program
from scenario import UNITTEST, Scenario

PLAN_COMMAND = ("plan", SIGN_IN_ID, SIGN_IN, "--skip-clarify", "--events")
IMPL_COMMAND = ("impl", GREETING_ID, "--events")
SPEC_PATH = f"{FOLDER}/specs/user-model.md"
HOLD = "hold"  # beside the project: while it is there, the check does not end
HELD_CHECK = (
    '[[checks]]\nname = "tests"\n'
    f"command = '''if test -e ../{HOLD}; then echo held; sleep 600; fi; {UNITTEST}'''\n"
    "required = true\ntimeout = 900\n"
)

Event = dict[str, Any]
Step = tuple[str, int, int]


# ---- the whole program


def usual_command(scenario: Scenario) -> Sequence[str]:
    return IMPL_COMMAND if scenario.change_id == GREETING_ID else PLAN_COMMAND


@contextmanager
def started(scenario: Scenario, command: Sequence[str] = ()) -> Iterator[Program]:
    """The command at work, as a terminal starts one: in a process group of its own."""
    program = scenario.start(*(command or usual_command(scenario)), stderr=subprocess.DEVNULL, process_group=0)
    with program:
        try:
            yield program
        finally:
            program.kill()


def wait_for_event(program: "subprocess.Popen[str]", **wanted: Any) -> None:
    """Until it has printed an event with these values."""
    assert program.stdout
    lines = []
    for line in program.stdout:
        lines.append(line)
        event = json.loads(line)
        if all(event.get(name) == value for name, value in wanted.items()):
            return
    raise AssertionError(f"no {wanted} in:\n{''.join(lines)}")


def signal_at_event(scenario: Scenario, number: signal.Signals, command: Sequence[str] = (), **wanted: Any) -> int:
    """Run the command, send the signal at that event, and return its exit code."""
    with started(scenario, command) as program:
        wait_for_event(program, **wanted)
        os.kill(program.pid, number)
        assert program.stdout
        program.stdout.read()
        code = program.wait()
    wait_until_gone(scenario)
    return code


def kill_at_event(scenario: Scenario, **wanted: Any) -> None:
    signal_at_event(scenario, signal.SIGKILL, **wanted)


def kill_at_write(
    scenario: Scenario,
    moment: str,
    number: int,
    below: Path | None = None,
    command: Sequence[str] = (),
    codes: Sequence[int] = (0,),
) -> bool:
    """Kill the command at its number-th write below a folder, usually the change's; False: it ended by itself."""
    crash = CrashPoint(moment, number, str(below or scenario.folder))
    done = scenario.agentd(*(command or usual_command(scenario)), crash=crash)
    assert done.code in (*codes, -9), done.out + done.err
    wait_until_gone(scenario)
    return done.code == -9


def wait_until_gone(scenario: Scenario) -> None:
    """The lock is free, and by then everything that worked on the project has gone."""
    lock = scenario.local_state / "locks" / f"{scenario.change_id}.run"
    wait_until(lambda: locks.active_run(lock) is None, "the lock is free")
    found = processes_left(scenario)
    assert not found, f"left behind: {found}"


def processes_left(scenario: Scenario) -> list[str]:
    """Processes with the scenario's home: agents and checks. A git command or an MCP server of a killed run ends by
    itself."""
    mark = f"HOME={scenario.home}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return [one for one in found if one and not one.startswith("git ") and "program/client.py" not in one]


@contextmanager
def held_checks(scenario: Scenario) -> Iterator[None]:
    """With HELD_CHECK, checks do not end in this block."""
    mark = scenario.root.with_name(HOLD)
    mark.touch()
    yield
    mark.unlink()


@contextmanager
def restorable(scenario: Scenario) -> Iterator[Callable[[], None]]:
    """The repository as it is now; what is yielded puts it back to that."""
    copy = scenario.root.with_name(f"copy-{uuid.uuid4().hex}")
    shutil.copytree(scenario.root, copy, symlinks=True)

    def restore() -> None:
        shutil.rmtree(scenario.root)
        shutil.copytree(copy, scenario.root, symlinks=True)

    yield restore
    shutil.rmtree(copy)


# ---- what a killed run left, and what comes of it


def journal_lines(scenario: Scenario) -> list[Event]:
    path = scenario.local_state / "journal" / f"{SIGN_IN_ID}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def started_calls(events: list[Event]) -> list[Step]:
    return [(one["step"], one["round"], one["number"]) for one in events if one["type"] == "step.started"]


def started_names(events: list[Event]) -> list[str]:
    return [name for name, _, _ in started_calls(events)]


def finished_calls(scenario: Scenario) -> set[Step]:
    if not (scenario.folder / STATE_FILE).exists():
        return set()
    return {step.key[:3] for step in scenario.state().steps if step.status is StepStatus.DONE}


@contextmanager
def nothing_repeated(scenario: Scenario) -> Iterator[None]:
    """In this block no step is started that was done before it."""
    done, lines = finished_calls(scenario), len(journal_lines(scenario))
    yield
    assert not done & set(started_calls(journal_lines(scenario)[lines:]))
    assert done <= finished_calls(scenario)


def resume(scenario: Scenario, command: Sequence[str] = PLAN_COMMAND, code: int = 0) -> None:
    """The same command, to its end."""
    with nothing_repeated(scenario):
        ran = scenario.agentd(*command)
    assert ran.code == code, ran.out + ran.err


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def plan_result(scenario: Scenario) -> list[str]:
    """All that a plan comes to, in lines, but for times, ids and what killed calls have cost."""
    folder = scenario.folder
    texts = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}
    state = read_state(folder)
    hashes = {files.hash_bytes(text.encode()): name for name, text in texts.items()}
    hashes[document_hash(folder / "proposal.md")] = "proposal.md"
    hashes[state.base.commit or ""] = "the base"
    lines = [f"{state.phase} {state.verdict} {state.round} {state.lane} {state.run} {state.git} {state.base}"]
    for step in state.steps:
        if step.status is not StepStatus.FAILED:
            lines.append(f"{step.key[:3]} {step.status} {step.outputs}")
    for moved in state.history:
        lines.append(f"{moved.origin} {moved.to} {moved.event} {moved.by} {moved.why} {moved.hashes}")
    lines += [f"{one}" for one in state.findings]
    for name, text in sorted(texts.items()):
        lines += [f"---- {name}", *text.splitlines()] if name != STATE_FILE else []
    lines += [str(path) for path in (*scenario.local_state.glob("calls/*"), *_lost_runs(scenario))]
    return [_comparable(line, hashes) for line in lines]


def _lost_runs(scenario: Scenario) -> list[Path]:
    """What is left of runs, and the next run would not find."""
    paths = scenario.local_state.glob("runs/*/[a-z]*")
    return [path for path in paths if not path.with_name("owner.json").exists()]


def _comparable(line: str, hashes: Mapping[str, str]) -> str:
    for digest, name in hashes.items():
        line = line.replace(digest, f"the hash of {name}")
    return _SESSION.sub("a session", _TIME.sub("a time", line))


# ---- a plan with one of everything

BUSY_PLAN = (
    "proposal-gen",
    "proposal-review",
    "spec-gen-user-model",
    "spec-review-user-model",
    "format-fix",
    "tasks-gen",
    "tasks-review",
    "challenge",
)
_ONLY_SPEAK = ("proposal-review", "tasks-review")


def busy_plan_steps() -> Steps:
    """A self-review that edits, a format error that is fixed, an approval with a finding."""
    steps = small_plan_steps()
    clumsy = edit_spec_by_tool("## Overview\n\nA user is one person.", "## About\n\nA user is one living person.")
    steps["spec-review-user-model"] = [clumsy, usage(0.002), say("<review>NEEDS_REVISION</review>")]
    for name in _ONLY_SPEAK:
        steps[name] = [say("I look."), usage(0.001), say(PASS)]
    steps["format-fix"] = [edit_spec_by_tool("## About", "## Overview"), usage(0.003), say("Fixed.")]
    steps["challenge"] = report("APPROVED", finding("low"))
    return steps


def hang_in(steps: Steps, *names: str) -> Steps:
    """The first attempt at these steps does its first action and then hangs."""
    return steps | {f"{name}/1/1": [steps[name][0], HANG] for name in names}


def first_action_of(step: str) -> Event:
    """The event of it."""
    did = {"kind": "text"} if step in _ONLY_SPEAK else {"ok": True}
    return {"type": "agent.activity", "step": step, **did}


# ---- a function in a fork of this process

Tell = Callable[[Any], None]
Strike = Callable[[], None]
OPERATIONS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"}


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_just_after() -> None:
    """The operation is done, and not one line of Python or call of C after it."""

    def end(frame: FrameType, event: str, argument: Any) -> None:
        if frame.f_code.co_filename != __file__:  # what is at work here comes before the operation
            kill()

    sys.setprofile(end)


def run_in_fork(
    work: Callable[[Tell], None], root: Path, dies_at: int | None, after: Any = None, strike: Strike = kill
) -> tuple[bool, list[Any]]:
    """Whether it lived to the end, and what it told.

    Before its dies_at-th operation on a file below root, `strike` happens to it; operations are counted from the
    moment it tells `after`.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _live(work, str(root), dies_at, after, strike, writing)
    os.close(writing)
    with open(reading, "rb") as pipe:
        told = [json.loads(line) for line in pipe]
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL), "the work failed; its words are on stderr"
    return code == 0, told


def _live(
    work: Callable[[Tell], None], root: str, dies_at: int | None, after: Any, strike: Strike, writing: int
) -> None:
    seen = 0
    counting = after is None

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if counting and event in OPERATIONS and str(arguments[0]).startswith(root):
            seen += 1
            if seen == dies_at:
                strike()

    def tell(words: Any) -> None:
        nonlocal counting
        os.write(writing, json.dumps(words).encode() + b"\n")
        counting = counting or words == after

    code = 1
    try:
        sys.addaudithook(watch)
        work(tell)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
