"""Open comments of people become findings of the next round; what is said later goes along.

The comment is told its finding's id before the finding is made: cut off in between, the next command makes it.
"""

from collections.abc import Sequence
from dataclasses import replace

from agentd.change import Change, link_findings, read_comments
from agentd.documents import (
    ADDED,
    QUOTE_LENGTH,
    AnchorMatch,
    Comment,
    Evidence,
    Finding,
    FindingEdit,
    InvalidDocument,
    MatchKind,
    current_findings,
    decode_text,
    edit_content,
    find_anchor,
    resolve_comments,
)
from agentd.domain import FindingState, clock, events
from agentd.engine.steps import person_edits
from agentd.engine.steps.judge_spec import JudgeSpec
from agentd.engine.steps.step_context import StepContext
from agentd.storage import files

_TITLE = 120  # characters


def apply_comments(ctx: StepContext, judge_spec: JudgeSpec) -> None:
    """Into the last record of that judge; where there is none they wait for the first one."""
    said = [one for one in read_comments(ctx.change) if one.words]  # one that is just begun says nothing yet
    if not said:
        return
    waiting, found = ctx.change.read().findings, ctx.change.records(judge_spec.kind)
    all_made = (*current_findings(ctx.change.records()), *waiting)
    said = list(resolve_comments(said, all_made))
    made_before = {one.id for one in all_made}
    new = _linked(ctx, [one for one in said if one.is_open and one.finding not in made_before])
    made = [_finding(ctx.change, one) for one in new]
    known = {one.id: one for one in (current_findings(found) if found else waiting)}
    later = [(one, known[one.finding]) for one in said if one.finding in known and known[one.finding].state.is_open]
    if found:
        changes = [*(_added(one) for one in made), *(word for one in later for word in _words(*one))]
        if changes:
            person_edits.write_edits(ctx, found[-1], changes)
    else:
        _wait(ctx, made, later)


def _linked(ctx: StepContext, new: Sequence[Comment]) -> list[Comment]:
    """Each with the id of its finding; one that has an id was cut off before its finding was made."""
    first = person_edits.next_person_id(ctx)
    without = [one.id for one in new if one.finding is None]
    ids = {id_: f"P{number}" for number, id_ in enumerate(without, first)}
    if ids:
        link_findings(ctx.change, ids)
    return [replace(one, finding=one.finding or ids[one.id]) for one in new]


def _wait(ctx: StepContext, made: Sequence[Finding], later: Sequence[tuple[Comment, Finding]]) -> None:
    said = {finding.id: comment for comment, finding in later}
    if not made and not said:
        return

    def waiting(old: Finding) -> Finding:
        comment = said.get(old.id)
        return replace(old, title=_title(comment), what=comment.words) if comment else old

    closed = {id_ for id_, comment in said.items() if not comment.is_open}
    ctx.run.update(
        lambda old: replace(old, findings=(*(waiting(one) for one in old.findings if one.id not in closed), *made))
    )
    for one in made:
        values = {name: getattr(one, name) for name in ("id", "severity", "title", "where", "verified", "by", "state")}
        ctx.run.emit(events.FindingReported(**values))


def _added(one: Finding) -> FindingEdit:
    return FindingEdit(one.id, ADDED, edit_content(one), one.by, clock.now())


def _words(comment: Comment, finding: Finding) -> list[FindingEdit]:
    """What people have said about it since: other words, or that it is settled."""
    by, at = comment.thread[-1].by, clock.now()
    if not comment.is_open:
        return [FindingEdit(finding.id, "state", str(FindingState.WITHDRAWN), comment.resolved_by or by, at)]
    new = {"title": (finding.title, _title(comment)), "description": (finding.what, comment.words)}
    return [FindingEdit(finding.id, name, now, by, at) for name, (before, now) in new.items() if before != now]


def _finding(change: Change, one: Comment) -> Finding:
    assert one.finding
    place = _place(change, one)
    line, because = place.line if place else None, _doubt(one, place)
    return Finding(
        id=one.finding,
        severity=one.severity.severity,
        title=_title(one),
        what=one.words,
        suggestion="",
        requirement=None,
        where=f"{one.document}:{line}" if line else one.document,
        evidence=Evidence(file=one.document, line=line, quote=one.anchor.quote[:QUOTE_LENGTH]),
        verified=because is None,
        by=one.thread[0].by,
        state=FindingState.OPEN,
        unverified_because=because,
        comment=one.id,
    )


def _title(one: Comment) -> str:
    return " ".join(one.words.split("\n")[0].split())[:_TITLE]


def _place(change: Change, one: Comment) -> AnchorMatch | None:
    try:
        text = decode_text(files.read(change.folder / one.document), one.document)
    except (FileNotFoundError, InvalidDocument):
        return None
    return find_anchor(one.anchor, text)


def _doubt(one: Comment, place: AnchorMatch | None) -> str | None:
    if place is None:
        return f"the text that it is about is gone from {one.document}"
    return "the text that it is about has changed since" if place.kind is MatchKind.CHANGED else None
