"""What a person reads when a workflow has ended: what came of it, what is open, what it cost, what to type next."""

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
_FINDINGS = 10  # shown; the rest is a count and a command
_FILES = 12


def run_summary(result: dict[str, Any], told: Sequence[str] = ()) -> str:
    """The result as `--json` gives it, in words. Findings that were `told` just above on this terminal are left out."""
    width = output.width() or output.PIPE
    found = findings_text(result, width)
    blocks = [
        _outcome(result, width),
        found if output.width() is None or found != [*told] else [],
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
    """The open ones, most severe first."""
    ranks = list(Severity)
    found = [one for one in result["findings"]["list"] if FindingState(one["state"]).is_open]
    found.sort(key=lambda one: ranks.index(Severity(one["severity"])))
    shown, left = found[:_FINDINGS], len(found) - _FINDINGS
    lines = finding_lines(shown, width)
    return [*lines, f"  … and {left} more: agentd status {result['change_id']}"] if left > 0 else lines


def finding_lines(found: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """Id, severity, title and place; the place under the title where not all of them fit on a line."""
    if not found:
        return []
    rows = [
        (
            f"  {one['id']}",
            one["severity"],
            text_table.clean_line(one["title"]),
            text_table.clean_line(one["where"] or ""),
        )
        for one in found
    ]
    heads = [(name, severity) for name, severity, _, _ in rows]
    places = max(text_table.display_width(where) for *_, where in rows)
    indent = text_table.rows_width(heads) + 2
    room = width - indent - places - 2
    if room >= max(text_table.display_width(title) for _, _, title, _ in rows):
        return _tinted(text_table.align_rows(rows), rows)
    lines = []
    titles = [_title(title, width - indent) for _, _, title, _ in rows]
    firsts = _tinted(
        text_table.align_rows([(*head, first) for head, (first, *_) in zip(heads, titles, strict=True)]), rows
    )
    for first, (_, *more), (*_, where) in zip(firsts, titles, rows, strict=True):
        place = [output.paint(" " * indent + text_table.shorten_end(where, width - indent), dim=True)] if where else []
        lines += [first, *(" " * indent + line for line in more), *place]
    return lines


def _title(title: str, room: int) -> list[str]:
    """In two lines at most."""
    first, *more = text_table.wrap_text(title, room) or [""]
    return [text_table.shorten_end(line, room) for line in ([first, " ".join(more)] if more else [first])]


def _tinted(lines: Sequence[str], rows: Sequence[tuple[str, str, str, str]]) -> list[str]:
    """High ones stand out."""
    return [
        line.replace(Severity.HIGH, output.paint(Severity.HIGH, fg="red"), 1) if row[1] == Severity.HIGH else line
        for line, row in zip(lines, rows, strict=True)
    ]


def _files(files: Sequence[str], width: int) -> list[str]:
    """The folder they share, then their names in it."""
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
    """Only where that is another folder than the one we stand in."""
    return f"work tree {git['tree']}" if git and git["setup"] == "worktree" else ""


def _cost(result: dict[str, Any]) -> str:
    cost, tokens, unknown = result["cost"], result["tokens"], result["cost"]["calls_without_price"]
    if not (cost["change"] or unknown or tokens["in"]):
        return "nothing"
    run, change = ("unknown" if cost[name] is None else format_usd(cost[name]) for name in ("run", "change"))
    is_known = cost["run"] is not None or cost["change"] is not None
    words = [f"{run} this run", f"{change} for the change"] if is_known else ["unknown"]
    if unknown:
        words.append(f"{pluralize(unknown, 'call')} without a known price")
    return ", ".join(words)


def _next(result: dict[str, Any], width: int) -> list[str]:
    """The command to type, or the commands to choose from; how to go on after an interruption is told with it."""
    if result["exit_code"] == Interrupted.exit_code:
        return []
    options = (result["decision_needed"] or {}).get("options", ())
    rows = [
        (one["command"], text_table.clean_line(one["label"]), one["recommended"]) for one in options if one["command"]
    ]
    if not rows:
        return output.following(result["next"]) if result["next"] else []
    rows.sort(key=lambda row: not row[2])
    told = [(command, f"{label} (recommended)" if best else label) for command, label, best in rows]
    plain = [(command, label) for command, label, _ in rows]
    bare = [(command, "") for command, _, _ in rows]
    room = width - output.LABEL
    cells = next((cells for cells in (told, plain) if text_table.rows_width(cells) <= room), bare)
    if text_table.rows_width(cells) > room and output.width() is not None:
        return [output.paint("Next", dim=True), *(command for command, _ in cells)]
    first, *more = text_table.align_rows(cells)
    return [*output.label("Next", first), *(line for one in more for line in output.label("", one))]


def _fact(name: str, words: str, width: int) -> list[str]:
    return output.label(name, text_table.clean_line(words), width) if words else []


def _wrapped(text: str, width: int) -> list[str]:
    """Line by line, each with its own indent."""
    found = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip(" ")))
        found += [
            f"{indent}{part}"
            for part in text_table.wrap_text(text_table.clean_line(line), max(width - len(indent), 20))
        ]
    return found
