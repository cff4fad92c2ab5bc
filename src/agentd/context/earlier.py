"""What was found in earlier rounds, and what makers, judges and people have said about it since (pure)."""

from collections.abc import Iterator, Sequence

from agentd.context.quoting import fenced
from agentd.documents.finding_status import ADDED, current_findings
from agentd.documents.records import Finding, FindingAnswer, FindingEdit, PreviousFinding, ReviewRecord
from agentd.documents.review_document import display_author

INDENT = "  "


def earlier(records: Sequence[ReviewRecord], place: str, limit: int) -> str:
    """Open ones in full, closed ones in a line; "" in a first round. What does not fit is named."""
    found = sorted(current_findings(records), key=lambda one: not one.state.is_open)
    if not found:
        return ""
    kept: list[str] = []
    left_out: list[str] = []
    for one in found:
        text = _whole(one, records) if one.state.is_open else _line(one)
        if len(text) + 1 <= limit:
            kept.append(text)
            limit -= len(text) + 1
        else:
            left_out.append(one.id)
    parts = ["Open ones first; those that are closed have no more than a line."]
    parts += [fenced("\n".join(kept))] if kept else []
    if left_out:
        parts.append(f"[left out: {', '.join(left_out[:200])}; they stand in the records in `{place}`]")
    return "\n\n".join(parts)


def _line(finding: Finding) -> str:
    return f"{finding.id} ({finding.severity}, {finding.state}): {_indented(finding.title)}"


def _whole(finding: Finding, records: Sequence[ReviewRecord]) -> str:
    place = [finding.requirement or "", finding.where or "", f"found by {display_author(finding.by)}"]
    rows = [
        f"At: {', '.join(filter(None, place))}",
        f"What: {finding.what}",
        f"Suggestion: {finding.suggestion}" if finding.suggestion else "",
        *_words(finding.id, records),
    ]
    return "\n".join([_line(finding), *(INDENT + _indented(row) for row in rows if row)])


def _words(id_: str, records: Sequence[ReviewRecord]) -> Iterator[str]:
    """In the order in which they were said."""
    for record in records:
        said: tuple[PreviousFinding | FindingAnswer | FindingEdit, ...] = (
            *record.previous,
            *record.answers,
            *record.edits,
        )
        for word in said:
            if word.id == id_:
                yield _word(word, record)


def _word(word: PreviousFinding | FindingAnswer | FindingEdit, record: ReviewRecord) -> str:
    match word:
        case PreviousFinding():
            return f"{display_author(record.by)} in round {record.round}: {word.state}. {word.note}"
        case FindingAnswer():
            files = f" Changed: {', '.join(word.files)}." if word.files else ""
            return f"{display_author(word.by)} answered: {word.answer}. {word.note}{files}"
        case FindingEdit():
            if word.field == ADDED:
                return f"{display_author(word.by)}, a person, added it"
            return f"{display_author(word.by)}, a person, set its {word.field} to {word.to}"


def _indented(text: str) -> str:
    return text.strip().replace("\n", f"\n{INDENT}{INDENT}")
