"""Render CHALLENGE.md, REVIEW.md and the review block of proposal.md from the record of a round.

A person's recorded edits are applied, so rendering a document again shows the current state.
"""

import re
from collections.abc import Mapping
from typing import Any

from agentd.documents import review_blocks
from agentd.documents.prose import embed_text, fence_code, one_line, render_item
from agentd.documents.records import Evidence, Finding, PreviousFinding, ReviewRecord, previous_findings, round_findings
from agentd.domain import CheckStatus, FieldReader, FindingState, StateError

SAME_VENDOR = "Judge and maker are the same vendor; the judge had a fresh session."
NO_CHECKS = (
    "**No checks are configured.** Nothing was run on this tree: the verdict rests on the judge's reading alone."
)
MAX_TESTS = 20  # test names in one line

_TAG = re.compile(r"<(?=/?review\b)", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_RETURN = re.compile(r"\r\n?")
_TAG_MARK = "\0"  # cannot occur in cleaned text


def render_review(record: ReviewRecord, *, number: int | None = None, same_vendor: bool = False) -> str:
    """Render the document. `number` is the number of the record's file if it differs from the round."""
    kind = record.kind
    head = [
        "---",
        f"change: {record.change_id}",
        f"type: {kind}",
        f"round: {record.round}",
        f"record: reviews/{kind}-{number or record.round}.yaml",
        "---",
    ]
    parts = [
        "\n".join(head),
        f"# {kind.title()}: {record.change_id}",
        f"**Verdict**: {record.verdict}",
        _round(record, same_vendor),
        "## Summary",
        *(embed_text(_escape_tags(text)) for text in _summary_texts(record)),
        *(_evidence(record) if kind == "review" else ()),
        "## Issues",
        *([_render_finding(finding) for finding in round_findings(record)] or ["None."]),
        "## Earlier findings",
        "\n".join(_render_previous(row, record) for row in previous_findings(record)) or "None.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def review_block(record: ReviewRecord, *, iteration: int | None = None) -> review_blocks.ReviewBlock:
    """Return the review block of a challenge: earlier findings in their current state, then the new ones."""
    rows: list[Finding | PreviousFinding] = [*previous_findings(record), *round_findings(record)]
    lines = "\n".join(f"- {row.id} ({row.severity}, {row.state}): {one_line(_clean(row.title))}" for row in rows)
    # Leave review tags to the block writer, which escapes them so that they can be parsed back.
    summary = [_TAG_MARK.join(_TAG.split(text)) for text in _summary_texts(record)]
    texts = [embed_text(text).replace(_TAG_MARK, "<") for text in summary]
    parts = [f"**Verdict**: {record.verdict}", *texts, lines]
    return review_blocks.ReviewBlock(
        status=record.verdict.lower(),
        iteration=record.round if iteration is None else iteration,
        reviewer=display_author(record.by),
        text="\n\n".join(part for part in parts if part),
    )


# ---- parts


def display_author(by: str) -> str:
    """Return the author for display: `agent:codex` is codex, `check:tests` is check tests."""
    kind, colon, name = by.partition(":")
    if not colon:
        return _line(by)
    return _line(f"{kind} {name}" if kind in ("check", "rule") else name)


def _round(record: ReviewRecord, same_vendor: bool) -> str:
    model = f" ({_line(record.model)})" if record.model else ""
    judge, maker = display_author(record.by), display_author(record.made_by)
    line = f"Round {record.round}, {record.at}. Judge: {judge}{model}. Maker: {maker}."
    return f"{line} {SAME_VENDOR}" if same_vendor else line


def _summary_texts(record: ReviewRecord) -> list[str]:
    overruled = f"The judge reported {record.reported}. {record.overruled}" if record.overruled else ""
    return [_clean(record.summary), _clean(overruled)]


def _render_finding(finding: Finding) -> str:
    bullets = [
        f"- **Severity**: {finding.severity.title()}",
        _bullet("Description", finding.what),
        _bullet("Suggestion", finding.suggestion),
        _bullet("Spec Reference", finding.requirement),
        _bullet("Evidence", f"{_evidence_place(finding)}, {_verified(finding)}"),
        *_quote(finding.evidence),
        f"- **Found by**: {display_author(finding.by)}",
        f"- **State**: {finding.state}",
    ]
    # A trailing number sign would be parsed as closing the heading.
    title = re.sub(r"(?<!\S)(#+)$", r"\\\1", _line(finding.title))
    return f"### {finding.id}: {title}\n\n" + "\n".join(bullets)


def _evidence_place(finding: Finding) -> str:
    evidence = finding.evidence
    if finding.where or evidence is None:
        return _line(finding.where or "none")
    if evidence.check:
        return _line(f"check {evidence.check}")
    return _line(f"{evidence.file}:{evidence.line}" if evidence.line else evidence.file or "none")


def _verified(finding: Finding) -> str:
    if finding.verified:
        return "verified"
    return f"not verified: {_line(finding.unverified_because)}" if finding.unverified_because else "not verified"


def _quote(evidence: Evidence | None) -> list[str]:
    if evidence is None or not evidence.quote:
        return []
    return [f"  > {line}".rstrip() for line in _escape_tags(_clean(evidence.quote)).split("\n")]


def _render_previous(previous: PreviousFinding, record: ReviewRecord) -> str:
    lines = [f"- {previous.id} ({previous.severity}), {previous.state}: {_line(previous.title)}"]
    if previous.answer:
        by = display_author(previous.answered_by) if previous.answered_by else "maker"
        lines.append(_render_reply(by, previous.answer, previous.answer_note or ""))
    before = next((finding.state for finding in record.previous if finding.id == previous.id), previous.state)
    lines.append(_render_reply(display_author(record.by), before, previous.note))
    return "\n".join(lines)


def _render_reply(by: str, state: FindingState, note: str) -> str:
    return f"  - {by}, {state}: {_line(note)}" if note.strip() else f"  - {by}, {state}"


# ---- evidence of a review


def _evidence(record: ReviewRecord) -> list[str]:
    tree, base = (str(record.judged.get(key) or "")[:12] for key in ("tree", "base"))
    compared = f", compared with {base}" if base else ""
    parts = ["## Evidence", f"Tree {tree}{compared}." if tree else ""]
    if not record.checks:
        return [*parts, NO_CHECKS]
    for check in record.checks:
        parts += _check(check)
    return parts


def _check(check: Mapping[str, Any]) -> list[str]:
    row = FieldReader(check, "a check of the record")
    name = _line(row.text("name"))
    status = row.choice("status", CheckStatus)
    required = "required" if row.flag("required") else "not required"
    before = row.inner("before")
    known = before.texts("failed_tests") if before else ()
    failed = row.texts("failed_tests")
    code = row.take("exit_code")
    bullets = [
        f"- **Result**: {_status_text(status)} ({required})",
        f"- **Command**: {_code(row.text('command', ''))}",
        f"- **Exit code**: {'none' if code is None else _line(str(code))}",
        f"- **Duration**: {row.count('duration_ms') / 1000:.1f} s",
    ]
    if counts := row.mapping("counts"):
        bullets.append("- **Counts**: " + ", ".join(_line(f"{count} {kind}") for kind, count in counts.items()))
    if failed:
        bullets.append(f"- **Failed**: {_tests(failed, frozenset(known))}")
    bullets.append(f"- **Before the first edit**: {_before(before)}")
    if reason := row.text("known", ""):
        bullets.append(_bullet("Known failures", reason))
    tail = _clean(row.text("tail", "")).strip("\n")
    return [f"### Check: {name}", "\n".join(bullets), fence_code(tail, "text") if tail.strip() else ""]


def _before(before: FieldReader | None) -> str:
    if before is None:
        return "not run"
    try:
        return _status_text(before.choice("status", CheckStatus))
    except StateError:
        return "unknown"


def _tests(names: tuple[str, ...], known: frozenset[str]) -> str:
    """List test names, marking those that failed before the first edit. Cut a long list."""
    shown = ", ".join(_code(name) + (" (known)" if name in known else "") for name in names[:MAX_TESTS])
    more = len(names) - MAX_TESTS
    return f"{shown} and {more} more" if more > 0 else shown


def _status_text(status: CheckStatus) -> str:
    return str(status).replace("-", " ")


# ---- untrusted text


def _clean(text: str) -> str:
    """Replace control characters and normalize line endings."""
    return _CONTROL.sub("\ufffd", _RETURN.sub("\n", text))


def _escape_tags(text: str) -> str:
    return _TAG.sub("&lt;", text)


def _line(text: str) -> str:
    return one_line(_escape_tags(_clean(text)))


def _bullet(label: str, text: str | None) -> str:
    text = _escape_tags(_clean(text or "")).strip()
    return render_item(text or "none", f"**{label}**")


def _code(text: str) -> str:
    """Return a code span with more backticks than any run inside it."""
    text = _line(text)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    marks = "`" * (longest + 1)
    gap = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{gap}{text}{gap}{marks}" if text else "none"
