"""The challenger judges the plan: in a fresh session, by its report, for the content that it judged."""

import json
from typing import Any

from agentd import clock
from agentd.agents.causes import Cause
from agentd.calls import attempts
from agentd.calls.work import Done, Work
from agentd.documents import review_edits, verdict
from agentd.documents.records import Answer, Finding, Previous, Record, read_finding
from agentd.documents.standing import closed_by_people, standing
from agentd.errors import AgentFailed, VerdictUnknown
from agentd.fields import Fields
from agentd.steps import facts, recording
from agentd.steps.desk import Desk
from agentd.terms import ChallengeVerdict, FindingState, Role, Severity
from agentd.tools.judging import REPORT, told_apart
from agentd.tools.table import Stage

STEP = "challenge"
UNREADABLE = "Could not parse challenge verdict"
_SHOWN = 2000  # characters of an answer that is one finding as a whole


def challenge(desk: Desk) -> Record:
    desk.write_context(Role.CHALLENGER, Stage.CHALLENGE)
    judged = desk.change.hashes()
    said: list[str] = []

    def is_verdict(text: str) -> bool:
        said.append(text)
        return verdict.read(text, STEP).verdict is not None

    report = desk.run.folder / REPORT
    work = Work(
        step=STEP,
        round=desk.round,
        role=Role.CHALLENGER,
        stage=Stage.CHALLENGE,
        prompt=desk.prompt(
            STEP, Role.CHALLENGER, Stage.CHALLENGE, round=desk.round, documents=[desk.path(name) for name in judged]
        ),
        effect=report.is_file,
        answer=is_verdict,
        reminder=desk.reminder(Role.CHALLENGER, Stage.CHALLENGE, "You have not reported yet.", "append_review"),
        complexity=facts.complexity(desk.change),
    )
    try:
        done = attempts.perform(desk.run, work)
        told = json.loads(report.read_bytes()) if report.is_file() else _from_text(desk, done.text)
    except AgentFailed as error:
        if error.cause == Cause.DID_NOTHING and said and said[-1].strip():
            raise _unreadable(desk) from None
        raise
    record = _record(desk, told, done, judged)
    recording.keep(desk, record)
    recording.finish(desk, record, done.attempt, done.duration_ms)
    return record


def _unreadable(desk: Desk) -> VerdictUnknown:
    shown = f"agentd log {desk.change.id} --transcript --step {STEP}"
    return VerdictUnknown(UNREADABLE, f"{shown} shows what it answered; then run the command again")


def _record(desk: Desk, told: dict[str, Any], done: Done, judged: dict[str, str]) -> Record:
    maker, judge = (desk.config.agent_for(role) for role in (Role.PLANNER, Role.CHALLENGER))
    model = judge.model_for(facts.complexity(desk.change))
    by = f"agent:{judge.name}"
    waiting = desk.change.read().findings  # agentd's own, from around the calls of this round
    previous = _previous(desk, told["previous"])
    overruled = _overruled(told["verdict"], waiting, previous)
    return Record(
        change_id=desk.change.id,
        kind=STEP,
        round=desk.round,
        verdict=str(ChallengeVerdict.NEEDS_REVISION) if overruled else told["verdict"],
        reported=told["reported"],
        overruled=overruled,
        summary=told["summary"],
        by=by,
        model=model.model if model else None,
        session=done.session,
        made_by=f"agent:{maker.name}",
        at=clock.now(),
        judged=judged,
        findings=(*waiting, *(read_finding(Fields({**row, "by": by}, REPORT)) for row in told["findings"])),
        previous=previous,
    )


def _overruled(reported: str, waiting: tuple[Finding, ...], previous: tuple[Previous, ...]) -> str | None:
    """What an agent changed without leave is to be looked at first; a judge that answers in text settles nothing."""
    if reported != ChallengeVerdict.APPROVED:
        return None
    if names := [one.id for one in waiting if one.severity is Severity.HIGH and not _is_of_plan(one)]:
        return f"What an agent changed without leave must be settled first ({', '.join(names)})."
    left = [one.id for one in previous if one.severity is Severity.HIGH and one.state.is_open]
    return f"Findings of high severity are still open ({', '.join(left)})." if left else None


def _is_of_plan(one: Finding) -> bool:
    """About a file of the change itself: it was put back, and may have been a person's edit at the wrong moment."""
    return (one.where or "").startswith("agentd/changes/")


def _previous(desk: Desk, words: list[dict[str, str]]) -> tuple[Previous, ...]:
    """The judge's word on each earlier finding beside the maker's answer; one it left out stays open."""
    records = desk.change.records()
    answers: dict[str, Answer] = {one.id: one for record in records for one in record.answers}
    said = {word["id"]: word for word in words}
    found = []
    for one in standing(records):
        word = said.get(one.id)
        if word is None and not one.state.is_open:
            continue
        answer = answers.get(one.id)
        found.append(
            Previous(
                id=one.id,
                severity=one.severity,
                title=one.title,
                answer=answer.answer if answer else None,
                answer_note=answer.note if answer else None,
                answered_by=answer.by if answer else None,
                state=FindingState(word["state"]) if word else one.state,
                note=word["note"] if word else "Not mentioned, so it stays open.",
            )
        )
    return tuple(found)


# ---- a judge that answered in text


def _from_text(desk: Desk, text: str) -> dict[str, Any]:
    """The verdict and the findings that stand in a judge's answer, as a report would say them."""
    said = str(verdict.read(text, STEP).verdict)
    records = desk.change.records()
    earlier = {one.id: one for one in standing(records)}
    rows, again = told_apart(_rows(desk, text), earlier)
    found = [_finding(row, f"C{number}") for number, row in enumerate(rows, _next_number(desk))]
    words = [{"id": id_, **word} for id_, word in again.items() if id_ not in closed_by_people(records)]
    if said == ChallengeVerdict.APPROVED and any(row["severity"] == Severity.HIGH for row in found):
        raise _unreadable(desk)  # it says both
    is_open = words or any(one.state.is_open for one in earlier.values())
    if said != ChallengeVerdict.APPROVED and not found and not is_open:
        whole = {"severity": Severity.HIGH, "title": "The judge's answer as a whole", "what": text.strip()[:_SHOWN]}
        found = [_finding(whole, f"C{_next_number(desk)}")]
    summary = "The judge answered in text, not through its tool."
    return {"verdict": said, "reported": said, "summary": summary, "findings": found, "previous": words}


def _rows(desk: Desk, text: str) -> list[dict[str, Any]]:
    empty = Record(desk.change.id, STEP, desk.round, "", "", None, "", "", None, None, "", "", {}, ())
    return [
        {
            "severity": one.severity,
            "title": one.title,
            "what": one.what,
            "suggestion": one.suggestion,
            "requirement": one.requirement,
        }
        for one in review_edits.read(text, empty, "the answer").added
    ]


def _finding(row: dict[str, Any], id_: str) -> dict[str, Any]:
    because = "the judge answered in text"
    return {**row, "id": id_, "verified": False, "state": FindingState.OPEN, "unverified_because": because}


def _next_number(desk: Desk) -> int:
    used = [one.id[1:] for one in standing(desk.change.records()) if one.id.startswith("C")]
    return 1 + max((int(one) for one in used if one.isdigit()), default=0)
