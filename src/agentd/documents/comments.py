"""`comments.yaml` of a change: comments by people on its documents. Unknown keys are kept."""

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
QUOTE_LENGTH = 1000  # most characters of the commented text that are copied into the finding


class CommentSeverity(StrEnum):
    BLOCKER = "blocker"
    SHOULD = "should"
    NOTE = "note"

    @property
    def severity(self) -> Severity:
        """Return the severity of the finding made from the comment."""
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
    """`made`: document hash when written. `finding`: id of the finding made from it. `resolved_by`: who closed it."""

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
        """Return the text of the whole thread, each reply prefixed with its author."""
        replies = [f"{entry.by.partition(':')[2]}: {text}" for entry in self.thread[1:] if (text := entry.text.strip())]
        return "\n\n".join(filter(None, [self.thread[0].text.strip(), *replies]))

    def with_text(self, number: int, text: str, at: str) -> "Comment":
        """Return the comment with the text of entry `number` (from 0) replaced."""
        edited = replace(self.thread[number], text=text, at=at)
        return replace(self, thread=(*self.thread[:number], edited, *self.thread[number + 1 :]))


def resolve_comments(comments: Sequence[Comment], findings: Iterable[Finding]) -> tuple[Comment, ...]:
    """Mark comments as resolved if their own finding is closed. Drop links to findings that are not theirs."""
    known = {finding.id: finding for finding in findings}
    return tuple(_resolve_comment(comment, known) for comment in comments)


def misattributed_comments(comments: Sequence[Comment], findings: Iterable[Finding]) -> tuple[Comment, ...]:
    """Return the comments that link to a finding which was not made from them."""
    known = {finding.id: finding for finding in findings}
    return tuple(comment for comment in comments if comment.finding is not None and not _owns_finding(comment, known))


def _resolve_comment(comment: Comment, known: Mapping[str, Finding]) -> Comment:
    if comment.finding is None:
        return comment
    if not _owns_finding(comment, known):
        return replace(comment, finding=None)
    finding = known.get(comment.finding)
    return replace(comment, state=CommentState.RESOLVED) if finding and not finding.state.is_open else comment


def _owns_finding(comment: Comment, known: Mapping[str, Finding]) -> bool:
    """Return whether the linked finding was made from the comment.

    Anyone can edit the file, so a link alone must not close or hide a judge's finding.
    """
    assert comment.finding is not None
    finding = known.get(comment.finding)
    if finding is None:
        return _FINDING.fullmatch(comment.finding) is not None  # not created yet
    if not _FINDING.fullmatch(finding.id) or not finding.by.startswith("person:"):
        return False
    if finding.comment is not None:
        return finding.comment == comment.id
    evidence = finding.evidence  # older findings do not name their comment
    about = (evidence.file, evidence.quote) if evidence else None
    return about == (comment.document, comment.anchor.quote[:QUOTE_LENGTH]) and finding.by == comment.thread[0].by


@lru_cache(maxsize=64)  # a page parses the same text several times
def parse_comments(text: str, name: str = COMMENTS_FILE) -> tuple[Comment, ...]:
    """Parse the file. Raise StateError with the line on errors. Renumber duplicate ids."""
    try:
        data = yaml12.load(text)
    except yaml12.InvalidYaml as error:
        raise StateError(f"{name} line {error.line}: {error.message}") from None
    if data is None:
        return ()
    if not isinstance(data, list):
        raise StateError(f"{name} line 1: expected a list of comments, each starting with `- id: K1`")
    comments = []
    for row, line in zip_longest(data, _item_lines(text)[: len(data)], fillvalue=1):
        where = f"{name} line {line}"
        comments.append(_parse_comment(FieldReader(row, where), where))
    return _renumber_duplicates(comments, name)


def _renumber_duplicates(comments: Sequence[Comment], name: str) -> tuple[Comment, ...]:
    """Make ids unique after two branches used the same one. Drop identical copies."""
    last = max((comment.number for comment in comments), default=0)
    by_id: dict[str, list[Comment]] = {}
    kept = []
    for comment in comments:
        same = by_id.setdefault(comment.id, [])
        if comment in same:
            continue
        same.append(comment)
        last += len(same) > 1
        new = replace(comment, id=f"K{last}") if len(same) > 1 else comment
        if not _ID.fullmatch(new.id):
            raise StateError(f"{name}: comment id {comment.id} is used twice and no free id is left")
        kept.append(new)
    return tuple(kept)


def render_comments(comments: Sequence[Comment]) -> str:
    return yaml12.dump([_comment_data(comment) for comment in comments]) if comments else "[]\n"


def _item_lines(text: str) -> list[int]:
    """Return the line on which each comment starts, assuming the layout agentd writes."""
    items = [(number, match[1]) for number, line in enumerate(text.split("\n"), 1) if (match := _ITEM.match(line))]
    return [number for number, indent in items if indent == items[0][1]]


def _parse_comment(row: FieldReader, where: str) -> Comment:
    id_ = row.text("id")
    if not _ID.fullmatch(id_):
        raise StateError(f"{where}: invalid id {id_!r:.40}; ids look like K1")
    document, anchor_data = row.text("document"), row.inner("anchor")
    if anchor_data is None:
        raise StateError(f"{where}: {id_} has no anchor")
    thread = tuple(_parse_entry(entry) for entry in row.items("thread"))
    if not thread:
        raise StateError(f"{where}: the thread of {id_} is empty")
    return Comment(
        id=id_,
        anchor=Anchor(
            document=document,
            quote=anchor_data.text("quote"),
            before=anchor_data.text("before", ""),
            after=anchor_data.text("after", ""),
            heading=anchor_data.texts("heading"),
            line=anchor_data.count("line", 1),
            column=anchor_data.count("column", 1),
        ),
        severity=row.choice("severity", CommentSeverity),
        state=row.choice("state", CommentState),
        made=row.text("made", ""),
        thread=thread,
        finding=row.text_or_none("finding"),
        resolved_by=row.text_or_none("resolved_by"),
        extra=row.rest(),
        anchor_extra=anchor_data.rest(),
    )


def _parse_entry(row: FieldReader) -> CommentEntry:
    return CommentEntry(row.text("by"), row.text("at", ""), row.text("text", ""), row.rest())


def _comment_data(comment: Comment) -> dict[str, Any]:
    anchor = comment.anchor
    anchor_data = {"quote": anchor.quote, "before": anchor.before, "after": anchor.after, "heading": [*anchor.heading]}
    data = {
        "id": comment.id,
        "document": comment.document,
        "anchor": {**anchor_data, "line": anchor.line, "column": anchor.column, **comment.anchor_extra},
        "severity": str(comment.severity),
        "state": str(comment.state),
        "made": comment.made,
        "finding": comment.finding,
    }
    if comment.resolved_by:
        data["resolved_by"] = comment.resolved_by
    thread = [{"by": entry.by, "at": entry.at, "text": entry.text, **entry.extra} for entry in comment.thread]
    return {**data, "thread": thread, **comment.extra}
