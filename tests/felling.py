"""A plan whose command is killed with -9, and what is the same about it in the end as without that."""

import json
import re
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentd import files
from agentd.change import locks
from agentd.change.folder import STATE, document_hash, read_state
from agentd.terms import StepStatus
from plays import DESCRIPTION, PASS, call, finding, folder, small_plan, verdict
from program import AGENTD, CrashPoint, Program
from running import wait_until
from support import Box
from working import Action, say, usage

COMMAND = ("plan", "add-oauth", DESCRIPTION, "--skip-clarify", "--events")
SPEC = "agentd/changes/add-oauth/specs/user-model.md"
STEPS = (
    "proposal-gen",
    "proposal-review",
    "spec-gen-user-model",
    "spec-review-user-model",
    "format-fix",
    "tasks-gen",
    "tasks-review",
    "challenge",
)
LOOKS = ("proposal-review", "tasks-review")  # they only say something
PATIENT = "[limits]\ncalls_per_step = 500\n"
FOR_EVER: Action = {"wait": 600}

Event = dict[str, Any]
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def busy_plan() -> dict[str, list[Action]]:
    """A small plan with one of everything: a look that mends, a fault in form, an approval with a finding."""
    steps = small_plan()
    clumsy = edit("## Overview\n\nA user is one person.", "## About\n\nA user is one living person.")
    steps["spec-review-user-model"] = [clumsy, usage(0.002), say("<review>NEEDS_REVISION</review>")]
    for name in LOOKS:
        steps[name] = [say("I look."), usage(0.001), say(PASS)]
    steps["format-fix"] = [edit("## About", "## Overview"), usage(0.003), say("Mended.")]
    steps["challenge"] = verdict("APPROVED", finding("low"))
    return steps


def endless(steps: dict[str, list[Action]], *names: str) -> dict[str, list[Action]]:
    """The first attempt at these steps begins with its work, and does not end."""
    return steps | {f"{name}/1/1": [steps[name][0], FOR_EVER] for name in names}


def at_work_in(step: str) -> Event:
    """It has done what it begins with."""
    did = {"kind": "text"} if step in LOOKS else {"ok": True}
    return {"type": "agent.activity", "step": step, **did}


def edit(old: str, new: str) -> Action:
    return call("edit_file", path=SPEC, old_text=old, new_text=new)


# ---- killing


@contextmanager
def begun(box: Box) -> Iterator[subprocess.Popen[str]]:
    """The command at work, as a terminal starts one: in a process group of its own."""
    pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
    with Program(
        [AGENTD, *COMMAND],
        cwd=box.root,
        env=box.env,
        stdin=quiet,
        stdout=pipe,
        stderr=quiet,
        text=True,
        process_group=0,
    ) as program:
        try:
            yield program
        finally:
            program.kill()


def until(program: subprocess.Popen[str], **wanted: Any) -> None:
    """It has told an event with these values."""
    assert program.stdout
    lines = []
    for line in program.stdout:
        lines.append(line)
        event = json.loads(line)
        if all(event.get(name) == value for name, value in wanted.items()):
            return
    raise AssertionError(f"no {wanted} in:\n{''.join(lines)}")


def fell(box: Box, **wanted: Any) -> None:
    """Run the command and kill it at that event; what is left of it has ended when this returns."""
    with begun(box) as program:
        until(program, **wanted)
        program.kill()
    _alone(box)


def fell_at_write(
    box: Box, moment: str, number: int, below: Path, command: Sequence[str] = COMMAND, code: int = 0
) -> bool:
    """The same at the number-th write below a folder; False: it did not come to that, and ended by itself."""
    done = box.agentd(*command, crash=CrashPoint(moment, number, str(below)))
    assert done.code in (code, -9), done.out + done.err
    _alone(box)
    return done.code == -9


def _alone(box: Box) -> None:
    lock = _room(box) / "locks" / "add-oauth.run"
    wait_until(lambda: locks.active_run(lock) is None, "the lock is free")


# ---- looking


def finished(box: Box) -> set[tuple[str, int, int]]:
    """The steps that are done."""
    if not (folder(box) / STATE).exists():
        return set()
    return {step.key[:3] for step in read_state(folder(box)).steps if step.status is StepStatus.DONE}


def journal(box: Box) -> list[Event]:
    path = _room(box) / "journal" / "add-oauth.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def calls(events: list[Event]) -> list[tuple[str, int, int]]:
    return [(one["step"], one["round"], one["number"]) for one in events if one["type"] == "step.started"]


def called(events: list[Event]) -> list[str]:
    return [name for name, _, _ in calls(events)]


@contextmanager
def nothing_again(box: Box) -> Iterator[None]:
    """In this block no step is called that is done already."""
    done, told = finished(box), len(journal(box))
    yield
    assert not done & set(calls(journal(box)[told:]))
    assert done <= finished(box)


def go_on(box: Box, command: Sequence[str] = COMMAND, code: int = 0) -> None:
    """The same command, to its end."""
    with nothing_again(box):
        ran = box.agentd(*command)
    assert ran.code == code, ran.out + ran.err


def result(box: Box) -> list[str]:
    """All that a plan comes to, in lines, but for times, ids and what cut calls have cost."""
    place = folder(box)
    texts = {path.relative_to(place).as_posix(): path.read_text() for path in place.rglob("*") if path.is_file()}
    state = read_state(place)
    hashes = {files.digest(text.encode()): name for name, text in texts.items()}
    hashes[document_hash(place / "proposal.md")] = "proposal.md"
    hashes[state.base.commit or ""] = "the base"
    lines = [f"{state.phase} {state.verdict} {state.round} {state.lane} {state.run} {state.git} {state.base}"]
    for step in state.steps:
        if step.status is not StepStatus.FAILED:
            lines.append(f"{step.key[:3]} {step.status} {step.outputs}")
    for moved in state.history:
        lines.append(f"{moved.origin} {moved.to} {moved.event} {moved.by} {moved.why} {moved.hashes}")
    lines += [f"{one}" for one in state.findings]
    for name, text in sorted(texts.items()):
        lines += [f"---- {name}", *text.splitlines()] if name != STATE else []
    lines += [str(path) for path in (*_room(box).glob("calls/*"), *_lost(box))]
    return [_plain(line, hashes) for line in lines]


def _lost(box: Box) -> list[Path]:
    """What is left of runs, and the next run would not find."""
    return [path for path in _room(box).glob("runs/*/[a-z]*") if not path.with_name("owner.json").exists()]


def _plain(line: str, hashes: Mapping[str, str]) -> str:
    for digest, name in hashes.items():
        line = line.replace(digest, f"the hash of {name}")
    return _SESSION.sub("a session", _TIME.sub("a time", line))


def _room(box: Box) -> Path:
    return box.root / ".git" / "agentd"


# ---- the same beginning for many ends


@contextmanager
def kept(box: Box) -> Iterator[Callable[[], None]]:
    """The box as it is now; what is given puts it back to that."""
    copy = box.root.with_name(f"copy-{uuid.uuid4().hex}")
    shutil.copytree(box.root, copy, symlinks=True)

    def put_back() -> None:
        shutil.rmtree(box.root)
        shutil.copytree(copy, box.root, symlinks=True)

    yield put_back
    shutil.rmtree(copy)
