"""A plan that was challenged, by judges and planners that need no server where their tools are not the point."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentd import clock, events
from agentd.change.folder import Change
from agentd.documents.records import Finding, Record
from agentd.documents.standing import standing
from agentd.steps import recording
from agentd.steps.desk import Desk
from agentd.terms import FindingState, Severity
from planned import SPEC, change_of, edit, journal, proposed
from plays import call
from program import AGENTD, Program
from support import Box
from terminal import Person, before_terminal
from working import Action, at_work, say, usage

SPEC_FILE = f"specs/{SPEC}.md"
QUESTION = "What next?"


def said(word: str, *found: tuple[str, str]) -> list[Action]:
    """A judge's answer in text: a verdict, and a severity and title for each finding."""
    issues = [f"### {title}\n\n- **Severity**: {severity}\n- **Description**: So.\n" for severity, title in found]
    return [usage(0.05), say("\n".join([f"**Verdict**: {word}\n\n## Issues\n", *issues]))]


NEEDED = said("NEEDS_REVISION", ("High", "It breaks"), ("Medium", "It is slow"))


def by_hand(number: int = 1) -> Action:
    """The planner's number-th edit of a spec, without its tools."""
    old, new = ("A user is" if one == 0 else f"A user ({one}) is" for one in (number - 1, number))
    return edit(SPEC_FILE, old, new)


def answer(id_: str, word: str, note: str = "Because.") -> Action:
    return call("answer_finding", id=id_, answer=word, note=note)


def previous(note: str = "Seen.", **states: str) -> list[dict[str, Any]]:
    return [{"id": id_, "state": state, "note": note} for id_, state in states.items()]


def judged(box: Box, *found: tuple[str, str], word: str = "NEEDS_REVISION", **later: list[Action]) -> Change:
    """A plan with that verdict; C1 is the first finding. `challenge_2` is what the next challenger does."""
    change = proposed(box, said("APPROVED"), {name.replace("_", "/"): actions for name, actions in later.items()})
    with at_work(change) as run:
        desk = Desk(run, os.environ)
        record = Record(
            change_id=change.id,
            kind="challenge",
            round=1,
            verdict=word,
            reported=word,
            overruled=None,
            summary="Looked at.",
            by="agent:play",
            model=None,
            session=None,
            made_by="agent:play",
            at=clock.now(),
            judged=change.hashes(),
            findings=tuple(_finding(f"C{number}", *one) for number, one in enumerate(found, 1)),
        )
        recording.keep(desk, record)
        recording.finish(desk, record, 1)
    return change


def _finding(id_: str, severity: str, title: str) -> Finding:
    grade = Severity(severity.lower())
    return Finding(id_, grade, title, "So.", "", None, None, None, True, "agent:play", FindingState.OPEN)


def states(box: Box) -> dict[str, str]:
    """How each finding stands."""
    return {one.id: str(one.state) for one in standing(change_of(box).records())}


def edits(record: Record) -> list[tuple[str, str, Any, str]]:
    return [(one.id, one.field, one.to, one.by) for one in record.edits]


def warnings(box: Box) -> list[tuple[str, str]]:
    found = [(one.code, one.message) for one in journal(box, events.Warned)]
    return [one for one in found if one[0] != "price-unknown"]  # nothing is paid here


def decided(box: Box) -> list[tuple[str, str, str, str | None]]:
    return [(one.answer, one.by, one.via, one.reason) for one in journal(box, events.DecisionMade)]


def page(box: Box) -> Path:
    return change_of(box).folder / "CHALLENGE.md"


def rewrite(path: Path, old: str, new: str) -> None:
    """A person's edit."""
    text = path.read_text()
    assert text.count(old) == 1, f"{old} stands {text.count(old)} times in:\n{text}"
    path.write_text(text.replace(old, new))


def at_question(box: Box, *flags: str, **env: str) -> Person:
    """Somebody who plans at a terminal, and is asked what comes next."""
    argv = [AGENTD, "plan", "add-oauth", *flags]
    person = before_terminal(argv, {**box.env, **env}, width=110, height=50)
    person.sees(QUESTION)
    person.sees("❯")
    return person


@contextmanager
def deciding(box: Box, *arguments: str, name: str = "dev") -> Iterator[subprocess.Popen[str]]:
    """Somebody else decides by flag."""
    env = {**box.env, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": name}
    argv = [AGENTD, "plan", "add-oauth", *arguments]
    pipe = subprocess.PIPE
    with Program(argv, cwd=box.root, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True) as program:
        try:
            yield program
        finally:
            program.kill()


def room(box: Box) -> Path:
    """Where decisions for a run of the change lie."""
    return box.root / ".git" / "agentd" / "inbox" / "add-oauth"


def names_in(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.is_dir() else []
