"""The result of a command: the state of the change and what can be done next."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentd.change import CallRecord, Change, ChangeState, readable_documents
from agentd.documents import Finding, count_open
from agentd.domain import AgentdError, Phase, TransitionEvent
from agentd.engine.steps.step_context import REVIEWER_SPEC
from agentd.engine.workflows.decision_questions import after_challenge, after_review, option_rows
from agentd.engine.workflows.run_request import RunOptions, RunRequest
from agentd.engine.workflows.verdict_status import is_plan_edited, is_plan_judged, last_record, open_findings

_DECIDED = {
    TransitionEvent.ACCEPTED: "Accepted",
    TransitionEvent.REJECTED: "Rejected",
    TransitionEvent.SENT_BACK: "Sent back",
    TransitionEvent.PLAN_WRONG: "Back to planning",
}
_NEXT = {
    Phase.DRAFTING: "plan",
    Phase.PROPOSED: "plan",
    Phase.CHALLENGED: "impl",
    Phase.REJECTED: "view",
    Phase.IMPLEMENTING: "impl",
    Phase.COMPLETE: "archive",
}
_OF_CODE = ("impl", "implement", "review", "resolve-reviews", "run")
_LINES = {"APPROVED": "APPROVED - Ready for implementation!", "REJECTED": "REJECTED - Fundamental problems"}
_FINDING = ("id", "severity", "title", "what", "suggestion", "requirement", "where", "verified", "by", "state")


def build_result(
    change: Change,
    command: str,
    wanted: str,
    before: int,
    message: str = "",
    error: AgentdError | None = None,
    code: int | None = None,
) -> dict[str, Any]:
    """Build the `--json` result. `before` is the number of calls in STATE.yaml when the command began."""
    state = change.read()
    found = open_findings(change)
    question = None if error else _question(change, state, found)
    code = error.exit_code if error else result_exit_code(command, state) if code is None else code
    return {
        "schema_version": 1,
        "command": command,
        "change_id": change.id,
        "resolved_from": wanted,
        "description": state.description,
        "phase": str(state.phase),
        "verdict": state.verdict,
        "round": state.round,
        "message": message or _message(change, state, found),
        "findings": _findings(found),
        "files": _files(change),
        "git": {
            **{name: _plain(getattr(state.git, name)) for name in ("setup", "branch", "tree", "target")},
            "tree": change.project.tree_name(change.tree),  # it may have been moved
        },
        **_spent(state, before),
        "session_id": state.session_id,
        "decision_needed": question,
        "next": next_command(change),
        "error": error and {"code": error.code, "message": error.message, "hint": error.hint},
        "exit_code": code,
    }


def decision_summary(change: Change) -> dict[str, Any]:
    """Return the part of the result that a decision is about."""
    state, found = change.read(), open_findings(change)
    return {
        "change_id": change.id,
        "verdict": state.verdict,
        "message": _message(change, state, found),
        "findings": _findings(found),
    }


def result_exit_code(command: str, state: ChangeState) -> int:
    """Return 0 if the command reached its goal: generated, answered or approved; else 1."""
    if command in ("proposal", "reproposal"):
        return int(state.phase is Phase.DRAFTING)
    no = [Phase.DRAFTING, Phase.PROPOSED, Phase.REJECTED]
    no += [Phase.CHALLENGED, Phase.IMPLEMENTING] if command in _OF_CODE else []
    return int(state.phase in no)


def verdict_line(verdict: str | None, found: list[Finding]) -> str:
    if verdict in _LINES:
        return _LINES[verdict]
    counts = count_open(found)
    words = ", ".join(f"{count} {severity.upper()}" for severity, count in counts.items() if count)
    return f"{verdict} - {f'Found {words} severity issues' if words else 'No open findings'}"


def _message(change: Change, state: ChangeState, found: list[Finding]) -> str:
    moved = state.history[-1] if state.history else None
    if moved and moved.event in _DECIDED:
        return f"{_DECIDED[moved.event]} by {moved.by.removeprefix('person:')}: {moved.why}"
    if state.phase is Phase.DRAFTING or moved is None:
        return "The plan is not complete yet"
    if moved.event is TransitionEvent.PLAN_GENERATED:
        return f"Generated: {moved.why.removesuffix(' generated and valid')}"
    if state.phase is Phase.PROPOSED and not is_plan_judged(change):
        return "The plan has changed since its last challenge"
    if moved.event is TransitionEvent.REVIEW_APPROVED:
        return "APPROVED - Complete, ready to archive!"
    if moved.event is TransitionEvent.IMPLEMENTATION_STARTED:
        return "The code is not complete yet"
    return verdict_line(state.verdict, found)


def _findings(found: list[Finding]) -> dict[str, Any]:
    return {
        "open": {str(severity): count for severity, count in count_open(found).items()},
        "list": [{name: _plain(getattr(one, name)) for name in _FINDING} for one in found],
    }


def _question(change: Change, state: ChangeState, found: list[Finding]) -> dict[str, Any] | None:
    """Return the question to a person after a verdict that asks for changes."""
    if state.phase is Phase.IMPLEMENTING and found and last_record(change, REVIEWER_SPEC):
        question = after_review(change)
    elif state.phase is Phase.PROPOSED and found and is_plan_judged(change):
        question = after_challenge(change)
    else:
        return None
    return {"id": question.id, "question": question.text, "options": option_rows(question)}


def next_request(change: Change) -> RunRequest | None:
    """Return what to run next; None if the change is closed."""
    phase = change.read().phase
    if phase is Phase.PROPOSED and is_plan_judged(change):
        # without an open finding there is nothing for the planner to answer
        options = RunOptions(rounds=1) if open_findings(change) else RunOptions(rechallenge=True)
        return RunRequest("plan", options)
    if phase in (Phase.CHALLENGED, Phase.REJECTED) and is_plan_edited(change):
        return RunRequest("plan", RunOptions(rechallenge=True))
    command = _NEXT.get(phase)
    return RunRequest(command) if command else None


def next_command(change: Change) -> str | None:
    request = next_request(change)
    return request.command_text(change.id) if request else None


def _files(change: Change) -> list[str]:
    """Return the files of the change, relative to the project's root."""
    names = readable_documents(change.folder)
    folder = change.folder.relative_to(change.project.changes_in(change.tree).parent.parent).as_posix()
    reviews = [f"reviews/{path.name}" for path in (change.folder / "reviews").glob("*.yaml")]
    return [f"{folder}/{name}" for name in (*names, *sorted(reviews, key=_natural))]


def _natural(name: str) -> tuple[str, int]:
    match = re.fullmatch(r"(.*?)(\d+)", Path(name).stem)
    return (match[1], int(match[2])) if match else (name, 0)


def _spent(state: ChangeState, before: int) -> dict[str, Any]:
    calls = state.llm_calls
    return {
        "cost": {
            "run": _known(calls[before:]),
            "change": _known(calls),
            "currency": "USD",
            "calls_without_price": sum(call.cost is None for call in calls),
        },
        "tokens": {
            "in": sum(call.tokens_in or 0 for call in calls),
            "out": sum(call.tokens_out or 0 for call in calls),
            "cached": sum(call.tokens_cached or 0 for call in calls),
        },
    }


def _known(calls: Sequence[CallRecord]) -> float | None:
    """Return the sum of known costs; None if there were calls and no cost is known."""
    if calls and all(call.cost is None for call in calls):
        return None
    return round(sum(call.cost or 0.0 for call in calls), 6)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value
