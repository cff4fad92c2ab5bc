"""Round by round: what a judge said, which findings were opened and closed, and what changed since the last round."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from agentd.change import Change, cached_text, document_bytes, readable_documents
from agentd.documents import Finding, ReviewRecord, current_findings, round_findings
from agentd.engine import JUDGE_SPECS
from agentd.storage import files
from agentd.web import annotations
from agentd.web.annotations import AnnotationEntry
from agentd.web.markup import word_diff
from agentd.web.markup.word_diff import DiffPiece
from agentd.web.site import Site
from agentd.web.tabs import ChangeTab, Query


@dataclass(frozen=True, slots=True)
class FindingSummary:
    """A finding in short, in its state after the round."""

    id: str
    severity: str
    title: str
    state: str
    by: str


@dataclass(frozen=True, slots=True)
class AnsweredFinding:
    """The author's answer to a finding, between this round and the next."""

    id: str
    said: AnnotationEntry
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangedDocument:
    """A document that differs from the round before; None: it did not exist."""

    name: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class RoundSummary:
    kind: str
    number: int
    verdict: str
    overruled: str
    summary: str
    by: str
    model: str
    at: str
    opened: tuple[FindingSummary, ...]
    closed: tuple[FindingSummary, ...]
    still_open: tuple[FindingSummary, ...]
    """After the round, what it opened among them."""
    answers: tuple[AnsweredFinding, ...]
    documents: tuple[ChangedDocument, ...]
    tree: str
    """Of a review: the code that was judged; `older_tree` is that of the review before, else the base."""
    older_tree: str


def read_rounds(change: Change) -> tuple[RoundSummary, ...]:
    """Return the rounds, newest first. Unreadable ones are left out; `annotation_problems` reports them."""
    found = annotations.read_record_view(change)
    by_kind = (found.of(kind) for kind in JUDGE_SPECS)
    made = [_round(some[:number]) for some in by_kind for number in range(1, len(some) + 1)]
    return tuple(sorted(made, key=lambda one: (one.at, one.kind, one.number), reverse=True))


def _round(so_far: tuple[ReviewRecord, ...]) -> RoundSummary:
    """Summarize the last of these records, all of one kind."""
    *earlier, record = so_far
    before = {one.id for one in current_findings(earlier) if one.state.is_open}
    after = current_findings(so_far)
    own = {one.id for one in round_findings(record)}
    judged = record.judged
    last = earlier[-1].judged if earlier else {}
    is_code = "tree" in judged
    return RoundSummary(
        kind=record.kind,
        number=record.round,
        verdict=record.verdict,
        overruled=record.overruled or "",
        summary=record.summary,
        by=record.by,
        model=record.model or "",
        at=record.at,
        opened=_briefs(one for one in after if one.id in own),
        closed=_briefs(one for one in after if one.id in before and not one.state.is_open),
        still_open=_briefs(one for one in after if one.state.is_open),
        answers=tuple(
            AnsweredFinding(
                one.id, AnnotationEntry(one.by, one.at, str(one.answer), one.note, record.round, record.kind), one.files
            )
            for one in record.answers
        ),
        documents=_moved(last, judged) if earlier and not is_code else (),
        tree=str(judged.get("tree", "")),
        older_tree=str(last.get("tree") or judged.get("base", "")) if is_code else "",
    )


def _briefs(some: Iterable[Finding]) -> tuple[FindingSummary, ...]:
    return tuple(FindingSummary(one.id, str(one.severity), one.title, str(one.state), one.by) for one in some)


def _moved(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[ChangedDocument, ...]:
    names = [name for name in {**new, **old} if old.get(name) != new.get(name)]
    return tuple(ChangedDocument(name, old.get(name), new.get(name)) for name in names)


def document_difference(change: Change, name: str, old: str | None, new: str | None) -> list[DiffPiece] | None:
    """Diff two versions of a document, by hash, word by word; None if this machine does not have one of the texts."""
    before, after = (_text(change, name, digest) for digest in (old, new))
    return None if before is None or after is None else word_diff.diff_words(before, after)


def _text(change: Change, name: str, digest: str | None) -> str | None:
    """Return the text with this hash, from the cache or the folder; "" for a document that did not exist."""
    if digest is None:
        return ""
    kept = cached_text(change, digest)
    if kept is not None or name not in readable_documents(change.folder):
        return kept
    data = document_bytes(change.folder / name)
    return data.decode("utf-8", "replace") if files.hash_bytes(data) == digest else None


@dataclass(frozen=True, slots=True)
class DocumentDiff:
    """`html` is None if the texts are not kept on this machine."""

    name: str
    is_new: bool
    is_gone: bool
    html: Markup | None


@dataclass(frozen=True, slots=True)
class RoundView:
    """`left`: was open before and still is. `where`: the document of each finding that belongs to one."""

    round: RoundSummary
    left: tuple[FindingSummary, ...]
    where: dict[str, str]
    differences: tuple[DocumentDiff, ...]


def round_view(change: Change, one: RoundSummary) -> RoundView:
    opened = {brief.id for brief in one.opened}
    left = tuple(brief for brief in one.still_open if brief.id not in opened)
    differences = tuple(
        DocumentDiff(
            moved.name, moved.old is None, moved.new is None, _between(change, moved.name, moved.old, moved.new)
        )
        for moved in one.documents
    )
    return RoundView(one, left, annotations.finding_documents(change), differences)


def _between(change: Change, name: str, old: str | None, new: str | None) -> Markup | None:
    pieces = document_difference(change, name, old, new)
    return None if pieces is None else Markup(word_diff.elided_html(pieces))  # noqa: S704  escaped there


def _values(site: Site, change: Change, query: Query) -> dict[str, Any]:
    return {
        "rounds": [round_view(change, one) for one in read_rounds(change)],
        "problems": annotations.annotation_problems(change),
    }


TABS = (
    ChangeTab("rounds", 30, _values, lambda documents, state: not {"CHALLENGE.md", "REVIEW.md"}.isdisjoint(documents)),
)
