"""The summary shown when a workflow has ended: outcome, open findings, cost and the next command."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from agentd.cli import output, text_table
from agentd.domain import ChallengeVerdict, FindingState, Interrupted, ReviewVerdict, Severity, format_usd, pluralize

_COLOURS: Mapping[str, str] = {
    ChallengeVerdict.APPROVED: "green",
    ChallengeVerdict.NEEDS_REVISION: "yellow",
    ChallengeVerdict.REJECTED: "red",
    ReviewVerdict.NEEDS_CHANGES: "yellow",
    ReviewVerdict.MAJOR_ISSUES: "red",
}
_FINDINGS = 10  # findings shown; the rest as a count and a command
_FILES = 12  # files shown


def run_summary(result: dict[str, Any], told: Sequence[str] = ()) -> str:
    """Render a `--json` result as text, without findings already shown (`told`) on this terminal."""
    width = output.width() or output.PIPE
    findings = findings_text(result, width)
    blocks = [
        _outcome(result, width),
        findings if output.width() is None or findings != [*told] else [],
        [
            *_files(result["files"], width),
            *_fact("Where", _where(result["git"]), width),
            *_fact("Cost", _cost(result), width),
        ],
        _next(result, width),
    ]
    return "\n\n".join("\n".join(lines) for lines in blocks if lines)


def _outcome(result: dict[str, Any], width: int) -> list[str]:
    if error := result["error"]:
        head, *more = _wrapped(f"Error: {error['message']}", width)
        hint = _wrapped(error["hint"], width - 4) if error["hint"] else []
        arrows = [f"  {'→' if number == 0 else ' '} {line}" for number, line in enumerate(hint)]
        return [output.paint("Error:", fg="red", bold=True) + head.removeprefix("Error:"), *more, *arrows]
    return verdict_lines(result, width)


def verdict_lines(result: Mapping[str, Any], width: int) -> list[str]:
    head, *more = _wrapped(result["message"], width) or [""]
    verdict = result["verdict"] or ""
    if verdict and head.startswith(verdict):
        head = output.paint(verdict, fg=_COLOURS.get(verdict), bold=True) + head.removeprefix(verdict)
    return [head, *more]


def findings_text(result: Mapping[str, Any], width: int) -> list[str]:
    """Return the open findings, most severe first."""
    ranks = list(Severity)
    findings = [finding for finding in result["findings"]["list"] if FindingState(finding["state"]).is_open]
    findings.sort(key=lambda finding: ranks.index(Severity(finding["severity"])))
    lines, left = finding_lines(findings[:_FINDINGS], width), len(findings) - _FINDINGS
    return [*lines, f"  … and {left} more: agentd status {result['change_id']}"] if left > 0 else lines


def finding_lines(findings: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """Return id, severity, title and location; the location below the title if a line is too short."""
    if not findings:
        return []
    rows = [
        (
            f"  {finding['id']}",
            finding["severity"],
            text_table.clean_line(finding["title"]),
            text_table.clean_line(finding["where"] or ""),
        )
        for finding in findings
    ]
    heads = [(name, severity) for name, severity, _, _ in rows]
    where_width = max(text_table.display_width(where) for *_, where in rows)
    indent = text_table.rows_width(heads) + 2
    title_width = width - indent - where_width - 2
    if title_width >= max(text_table.display_width(title) for _, _, title, _ in rows):
        return _colour_severity(text_table.align_rows(rows), rows)
    lines = []
    titles = [_shorten_title(title, width - indent) for _, _, title, _ in rows]
    firsts = _colour_severity(
        text_table.align_rows([(*head, first) for head, (first, *_) in zip(heads, titles, strict=True)]), rows
    )
    for first, (_, *more), (*_, where) in zip(firsts, titles, rows, strict=True):
        place = [output.paint(" " * indent + text_table.shorten_end(where, width - indent), dim=True)] if where else []
        lines += [first, *(" " * indent + line for line in more), *place]
    return lines


def _shorten_title(title: str, width: int) -> list[str]:
    """Wrap to at most two lines."""
    first, *more = text_table.wrap_text(title, width) or [""]
    return [text_table.shorten_end(line, width) for line in ([first, " ".join(more)] if more else [first])]


def _colour_severity(lines: Sequence[str], rows: Sequence[tuple[str, str, str, str]]) -> list[str]:
    """Show the high severity in red."""
    return [
        line.replace(Severity.HIGH, output.paint(Severity.HIGH, fg="red"), 1) if row[1] == Severity.HIGH else line
        for line, row in zip(lines, rows, strict=True)
    ]


def _files(files: Sequence[str], width: int) -> list[str]:
    """Return the common folder, then the file names relative to it."""
    if not files:
        return []
    folder = os.path.commonpath([os.path.dirname(name) for name in files])
    names = [os.path.relpath(name, folder) if folder else name for name in files]
    more = [f"and {len(names) - _FILES} more"] if len(names) > _FILES else []
    listed = ", ".join([*names[:_FILES], *more])
    return (
        [*_fact("Files", f"{folder}/", width), *_fact("", listed, width)] if folder else _fact("Files", listed, width)
    )


def _where(git: dict[str, Any] | None) -> str:
    """Name the worktree, if the change has its own."""
    return f"worktree {git['tree']}" if git and git["setup"] == "worktree" else ""


def _cost(result: dict[str, Any]) -> str:
    cost, tokens, unknown = result["cost"], result["tokens"], result["cost"]["calls_without_price"]
    if not (cost["change"] or unknown or tokens["in"]):
        return "nothing"
    run, change = ("unknown" if cost[name] is None else format_usd(cost[name]) for name in ("run", "change"))
    is_known = cost["run"] is not None or cost["change"] is not None
    parts = [f"{run} this run", f"{change} for the change"] if is_known else ["unknown"]
    if unknown:
        parts.append(f"{pluralize(unknown, 'call')} without a known price")
    return ", ".join(parts)


def _next(result: dict[str, Any], width: int) -> list[str]:
    """Return the next command, or the commands to choose from. An interruption's error already says how to resume."""
    if result["exit_code"] == Interrupted.exit_code:
        return []
    options = (result["decision_needed"] or {}).get("options", ())
    rows = [
        (option["command"], text_table.clean_line(option["label"]), option["recommended"])
        for option in options
        if option["command"]
    ]
    if not rows:
        return output.following(result["next"]) if result["next"] else []
    rows.sort(key=lambda row: not row[2])
    labelled = [
        (command, f"{label} (recommended)" if is_recommended else label) for command, label, is_recommended in rows
    ]
    plain = [(command, label) for command, label, _ in rows]
    commands_only = [(command, "") for command, _, _ in rows]
    available = width - output.LABEL
    cells = next((cells for cells in (labelled, plain) if text_table.rows_width(cells) <= available), commands_only)
    if text_table.rows_width(cells) > available and output.width() is not None:
        return [output.paint("Next", dim=True), *(command for command, _ in cells)]
    first, *more = text_table.align_rows(cells)
    return [*output.label("Next", first), *(line for row in more for line in output.label("", row))]


def _fact(name: str, text: str, width: int) -> list[str]:
    return output.label(name, text_table.clean_line(text), width) if text else []


def _wrapped(text: str, width: int) -> list[str]:
    """Wrap each line, keeping its indent."""
    wrapped = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip(" ")))
        wrapped += [
            f"{indent}{part}"
            for part in text_table.wrap_text(text_table.clean_line(line), max(width - len(indent), 20))
        ]
    return wrapped
