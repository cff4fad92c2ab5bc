"""`comments.yaml` of a change: what people say about places in its documents. Text <-> data; other keys stay."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from agentd.documents.anchors import Anchor
from agentd.documents.records import Finding
from agentd.domain import FieldReader, Severity, StateError, yaml12

COMMENTS_FILE = "comments.yaml"
_ID = re.compile(r"K[1-9]\d{0,8}")
_FINDING = re.compile(r"P[1-9]\d{0,8}")
_ITEM = re.compile(r"( *)-(?: |$)")
QUOTE_LENGTH = 1000  # characters of what a comment is about that its finding holds


class CommentSeverity(StrEnum):
    """How much a comment asks for."""

    BLOCKER = "blocker"
    SHOULD = "should"
    NOTE = "note"

    @property
    def severity(self) -> Severity:
        """Of the finding that it becomes."""
        return {
            CommentSeverity.BLOCKER: Severity.HIGH,
            CommentSeverity.SHOULD: Severity.MEDIUM,
            CommentSeverity.NOTE: Severity.LOW,
        }[self]


class CommentState(StrEnum):
    OPEN = "open"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class CommentEntry:
    by: str
    at: str
    text: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comment:
    """`made`: the hash of the document then. `finding`: what it became. `resolved_by`: the person who closed it."""

    id: str
    anchor: Anchor
    severity: CommentSeverity
    state: CommentState
    made: str
    thread: tuple[CommentEntry, ...]
    finding: str | None = None
    resolved_by: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    anchor_extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def document(self) -> str:
        return self.anchor.document

    @property
    def number(self) -> int:
        return int(self.id[1:])

    @property
    def is_open(self) -> bool:
        return self.state is CommentState.OPEN

    @property
    def words(self) -> str:
        """All that was said: the first word as it is, each later one with its author."""
        later = [f"{one.by.partition(':')[2]}: {one.text.strip()}" for one in self.thread[1:] if one.text.strip()]
        return "\n\n".join(filter(None, [self.thread[0].text.strip(), *later]))

    def with_text(self, number: int, text: str, at: str) -> "Comment":
        """Its number-th entry, from 0, in other words."""
        edited = replace(self.thread[number], text=text, at=at)
        return replace(self, thread=(*self.thread[:number], edited, *self.thread[number + 1 :]))


def resolve_comments(comments: Sequence[Comment], findings: Iterable[Finding]) -> tuple[Comment, ...]:
    """Among all findings of the change: one that is settled settles its own comment; other links say nothing."""
    known = {one.id: one for one in findings}
    return tuple(_standing(one, known) for one in comments)


def misattributed_comments(comments: Sequence[Comment], findings: Iterable[Finding]) -> tuple[Comment, ...]:
    """Those that name a finding which is not their own."""
    known = {one.id: one for one in findings}
    return tuple(one for one in comments if one.finding is not None and not _is_own(one, known))


def _standing(one: Comment, known: Mapping[str, Finding]) -> Comment:
    if one.finding is None:
        return one
    if not _is_own(one, known):
        return replace(one, finding=None)
    finding = known.get(one.finding)
    return replace(one, state=CommentState.RESOLVED) if finding and not finding.state.is_open else one


def _is_own(one: Comment, known: Mapping[str, Finding]) -> bool:
    """A file that anybody may edit closes and hides nothing that a judge has said."""
    assert one.finding is not None
    finding = known.get(one.finding)
    if finding is None:
        return _FINDING.fullmatch(one.finding) is not None  # it is still to be made
    if not _FINDING.fullmatch(finding.id) or not finding.by.startswith("person:"):
        return False
    if finding.comment is not None:
        return finding.comment == one.id
    evidence = finding.evidence  # older ones do not name their comment
    about = (evidence.file, evidence.quote) if evidence else None
    return about == (one.document, one.anchor.quote[:QUOTE_LENGTH]) and finding.by == one.thread[0].by


@lru_cache(maxsize=64)  # a page asks for the same text several times
def parse_comments(text: str, name: str = COMMENTS_FILE) -> tuple[Comment, ...]:
    """What is wrong is a StateError with its line. Two branches may have given one id twice: see `_apart`."""
    try:
        data = yaml12.load(text)
    except yaml12.InvalidYaml as error:
        raise StateError(f"{name} line {error.line}: {error.message}") from None
    if data is None:
        return ()
    if not isinstance(data, list):
        raise StateError(f"{name} line 1: a list of comments is needed, each beginning with `- id: K1`")
    found = []
    for row, line in zip_longest(data, _lines(text)[: len(data)], fillvalue=1):
        where = f"{name} line {line}"
        found.append(_comment(FieldReader(row, where), where))
    return _apart(found, name)


def _apart(found: Sequence[Comment], name: str) -> tuple[Comment, ...]:
    """The first keeps the id, another one gets the next free number; what is the same twice is one."""
    last = max((one.number for one in found), default=0)
    by_id: dict[str, list[Comment]] = {}
    kept = []
    for one in found:
        same = by_id.setdefault(one.id, [])
        if one in same:
            continue
        same.append(one)
        last += len(same) > 1
        new = replace(one, id=f"K{last}") if len(same) > 1 else one
        if not _ID.fullmatch(new.id):
            raise StateError(f"{name}: the comment {one.id} stands twice, and no number is left for one of them")
        kept.append(new)
    return tuple(kept)


def render_comments(comments: Sequence[Comment]) -> str:
    return yaml12.dump([_data(one) for one in comments]) if comments else "[]\n"


def _lines(text: str) -> list[int]:
    """In which each comment begins, where the list is written as agentd does."""
    found = [(number, match[1]) for number, line in enumerate(text.split("\n"), 1) if (match := _ITEM.match(line))]
    return [number for number, indent in found if indent == found[0][1]]


def _comment(row: FieldReader, where: str) -> Comment:
    id_ = row.text("id")
    if not _ID.fullmatch(id_):
        raise StateError(f"{where}: id is {id_!r:.40}, which is no K and a number")
    document, place = row.text("document"), row.inner("anchor")
    if place is None:
        raise StateError(f"{where}: {id_} has no anchor")
    thread = tuple(_entry(one) for one in row.items("thread"))
    if not thread:
        raise StateError(f"{where}: {id_} has no entry in its thread")
    return Comment(
        id=id_,
        anchor=_anchor(document, place),
        severity=row.choice("severity", CommentSeverity),
        state=row.choice("state", CommentState),
        made=row.text("made", ""),
        thread=thread,
        finding=row.text_or_none("finding"),
        resolved_by=row.text_or_none("resolved_by"),
        extra=row.rest(),
        anchor_extra=place.rest(),
    )


def _anchor(document: str, place: FieldReader) -> Anchor:
    return Anchor(
        document=document,
        quote=place.text("quote"),
        before=place.text("before", ""),
        after=place.text("after", ""),
        heading=place.texts("heading"),
        line=place.count("line", 1),
        column=place.count("column", 1),
    )


def _entry(row: FieldReader) -> CommentEntry:
    return CommentEntry(row.text("by"), row.text("at", ""), row.text("text", ""), row.rest())


def _data(one: Comment) -> dict[str, Any]:
    anchor = one.anchor
    place = {"quote": anchor.quote, "before": anchor.before, "after": anchor.after, "heading": [*anchor.heading]}
    data = {
        "id": one.id,
        "document": one.document,
        "anchor": {**place, "line": anchor.line, "column": anchor.column, **one.anchor_extra},
        "severity": str(one.severity),
        "state": str(one.state),
        "made": one.made,
        "finding": one.finding,
    }
    if one.resolved_by:
        data["resolved_by"] = one.resolved_by
    thread = [{"by": entry.by, "at": entry.at, "text": entry.text, **entry.extra} for entry in one.thread]
    return {**data, "thread": thread, **one.extra}
