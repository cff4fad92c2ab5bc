"""How every refusal looks, whatever is refused: what a person reads, and what a program reads."""

import os
import subprocess
from pathlib import Path

from agentd.domain.errors import AgentdError
from program import AGENTD
from scenario import Result, Scenario

ARROW = "  → "


def refused(kind: type[AgentdError], box: Scenario, *typed: str, names: str, code: str = "", json: bool = True) -> str:
    """The command is refused so, in words and as data, and does nothing: its hint, which says what to type next."""
    ran = box.agentd(*typed)
    hint = told(kind, ran, names)
    if json:
        as_data(kind, box.agentd(*typed, "--json"), names, hint, code)
    return hint


def told(kind: type[AgentdError], ran: Result, names: str) -> str:
    """What a person reads: the thing is named in the first line, and the last one says the way on."""
    assert ran.code == kind.exit_code, f"{ran.code}: {ran.out}{ran.err}"
    assert "Traceback" not in ran.out + ran.err
    lines = error_lines(ran.err)
    assert 2 <= len(lines) <= 3, lines
    assert names in lines[0], lines
    (arrow,) = (number for number, line in enumerate(lines) if line.startswith(ARROW))
    hint = " ".join(line.strip() for line in lines[arrow:]).removeprefix(ARROW.strip()).strip()
    assert hint, lines
    return hint


def error_lines(err: str) -> list[str]:
    """The error that ended it; after an empty line a run tells what it cost and what is next."""
    lines = err.splitlines()
    rest = lines[max(number for number, line in enumerate(lines) if line.startswith("Error: ")) :]
    return rest[: rest.index("")] if "" in rest else rest


def as_data(kind: type[AgentdError], ran: Result, names: str, hint: str, code: str = "") -> None:
    """What a program reads."""
    error = ran.json["error"]
    assert set(error) == {"code", "message", "hint"}
    assert (ran.code, ran.json["exit_code"]) == (kind.exit_code, kind.exit_code)
    assert error["code"] == (code or kind("").code)
    assert names in error["message"] and error["hint"] == hint


def shown(kind: type[AgentdError], text: str, names: str, hint: str = "") -> None:
    """Where an error is a row of a table or a piece of a page: still what it is about, and the way on."""
    assert names in text and (hint or kind.hint) in text, text
    assert hint or kind.hint
    assert "Traceback" not in text


def leads_on(box: Scenario, command: str, cwd: Path | None = None) -> Result:
    """Type it: it may ask for something else, but is a command, rightly typed."""
    path = f"{os.path.dirname(AGENTD)}:{box.env['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=cwd or box.root,
        env={**box.env, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode not in (2, 70, 126, 127), f"{command}: {done.stderr}"
    return Result(done.returncode, done.stdout, done.stderr)
