"""A maker's answers to findings: what it is asked, and what is kept of what it says."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentd.documents import Finding, FindingAnswer
from agentd.domain import FindingState, events
from agentd.engine.calls.call_request import CallRequest
from agentd.engine.steps.judge_spec import JudgeSpec
from agentd.engine.steps.step_context import StepContext

_ASKED = ("id", "severity", "title", "what", "suggestion", "requirement", "where")


def finding_rows(desk: StepContext, bench: JudgeSpec, left: Sequence[Finding]) -> list[dict[str, Any]]:
    """As the prompt has them, each with what the judge last said about it."""
    notes = {word.id: word.note for record in desk.change.records(bench.kind) for word in record.previous}
    return [{**{name: str(getattr(one, name) or "") for name in _ASKED}, "note": notes.get(one.id, "")} for one in left]


def answers_given(desk: StepContext, bench: JudgeSpec, told: Mapping[str, Any]) -> tuple[FindingAnswer, ...]:
    by = f"agent:{desk.config.agent_for(bench.maker).name}"
    return tuple(
        FindingAnswer(one["id"], FindingState(one["answer"]), one["note"], tuple(one["files"]), by, one["at"])
        for one in told.values()
    )


def warn_unanswered(
    desk: StepContext, work: CallRequest, attempt: int, left: Sequence[Finding], told: Mapping[str, Any]
) -> None:
    silent = [one.id for one in left if one.id not in told]
    if silent:
        words = f"the {work.role} did not answer {', '.join(silent)}"
        desk.run.emit(events.WarningIssued(**work.names(attempt), code="unanswered", message=words))


def summarize_answers(told: Mapping[str, Any]) -> str:
    """2 fixed, 1 disputed."""
    words = [one["answer"] for one in told.values()]
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
