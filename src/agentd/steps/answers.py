"""A maker's answers to findings: what it is asked, and what is kept of what it says."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentd.calls.work import Work
from agentd.documents.records import Finding, FindingAnswer
from agentd.domain import events
from agentd.domain.terms import FindingState
from agentd.steps.bench import Bench
from agentd.steps.desk import Desk

_ASKED = ("id", "severity", "title", "what", "suggestion", "requirement", "where")


def rows(desk: Desk, bench: Bench, left: Sequence[Finding]) -> list[dict[str, Any]]:
    """As the prompt has them, each with what the judge last said about it."""
    notes = {word.id: word.note for record in desk.change.records(bench.kind) for word in record.previous}
    return [{**{name: str(getattr(one, name) or "") for name in _ASKED}, "note": notes.get(one.id, "")} for one in left]


def given(desk: Desk, bench: Bench, told: Mapping[str, Any]) -> tuple[FindingAnswer, ...]:
    by = f"agent:{desk.config.agent_for(bench.maker).name}"
    return tuple(
        FindingAnswer(one["id"], FindingState(one["answer"]), one["note"], tuple(one["files"]), by, one["at"])
        for one in told.values()
    )


def warn_of_silence(desk: Desk, work: Work, attempt: int, left: Sequence[Finding], told: Mapping[str, Any]) -> None:
    silent = [one.id for one in left if one.id not in told]
    if silent:
        words = f"the {work.role} did not answer {', '.join(silent)}"
        desk.run.emit(events.WarningIssued(**work.names(attempt), code="unanswered", message=words))


def said(told: Mapping[str, Any]) -> str:
    """2 fixed, 1 disputed."""
    words = [one["answer"] for one in told.values()]
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
