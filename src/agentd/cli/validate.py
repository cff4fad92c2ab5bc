"""`agentd validate`: what is wrong with the documents of a change, and what would be right."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from agentd.change import (
    Change,
    ChangeLocator,
    LocatedChange,
    check_change_id,
    fixed_documents,
    validate_changes,
    write_fixes,
)
from agentd.cli import output
from agentd.cli.change_argument import change_argument
from agentd.domain import Busy, UsageError, pluralize
from agentd.project import Project, ValidationSettings, find_project, load_config
from agentd.validation import RuleFinding, count_by_severity, is_valid

_NAMED = 20  # of those that are not valid
_COLOURS = {"high": "red", "medium": "yellow", "low": None}


@click.command("validate")
@change_argument(required=False)
@click.option("--all", "everything", is_flag=True, help="Every open change that is checked out.")
@click.option("--strict", is_flag=True, help="Fail on any finding, not only on high ones.")
@click.option("--fix", is_flag=True, help="Mend what is mechanical: levels, requirement headings, frontmatter.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and write nothing.")
@output.json_option
@click.pass_context
def command(
    ctx: click.Context, change_id: str | None, everything: bool, strict: bool, fix: bool, diff: bool, as_json: bool
) -> int:
    """Check the documents of the change ID against the rules. Exit code 1: not valid."""
    if (change_id is None) != everything:
        raise UsageError("name one change, or all of them", "agentd validate <id>, or agentd validate --all")
    project = find_project()
    settings = load_config(project.config_file, flags=ctx.find_root().obj or ()).validation
    places = ChangeLocator(project)
    changes = [places.find(check_change_id(change_id))] if change_id else [one for one in places.open() if one.folder]
    if change_id and changes[0].summary.problem:
        change = _change(project, changes[0])
        change.read(), change.records()  # whichever is broken says so
    mended = {}
    if fix or diff:
        work = fixed_documents if diff else write_fixes
        mended = {one.id: _mend(work, _change(project, one), settings, everything) for one in changes}
    if diff:
        return _show_diff(changes, mended, as_json)
    found = validate_changes(project, changes, settings)
    return _show(changes, found, {key: sorted(value) for key, value in mended.items()}, strict, as_json, change_id)


def _mend(work: Any, change: Change, settings: ValidationSettings, everything: bool) -> dict[str, tuple[bytes, bytes]]:
    try:
        found: dict[str, tuple[bytes, bytes]] = work(change, settings)
        return found
    except Busy as error:
        if not everything:
            raise
        output.report(f"{change.id} was not mended: {error.message}")
        return {}


def _change(project: Project, found: LocatedChange) -> Change:
    return Change(project, found.id, found.tree or "", Path(found.folder or ""))


def _show(
    changes: Sequence[LocatedChange],
    found: Sequence[tuple[RuleFinding, ...]],
    mended: dict[str, list[str]],
    strict: bool,
    as_json: bool,
    only: str | None,
) -> int:
    valid = all(is_valid(findings, strict) for findings in found)
    rows = [_row(one, findings, mended.get(one.id, []), strict) for one, findings in zip(changes, found, strict=True)]
    data = rows[0] if only else {"valid": valid, "changes": rows}

    def text() -> str:
        lines = [line for one, findings in zip(changes, found, strict=True) for line in _lines(one, findings)]
        words = [f"{one.id}: mended {', '.join(mended[one.id])}" for one in changes if mended.get(one.id)]
        bad = [one.id for one, findings in zip(changes, found, strict=True) if not is_valid(findings, strict)]
        closing = _one(changes[0], found[0], strict) if only else output.prose(_all(len(changes), bad))
        return "\n".join([*lines, *words, *closing])

    return output.show_result("validate", as_json, data, text, 0 if valid else 1)


def _one(change: LocatedChange, findings: Sequence[RuleFinding], strict: bool) -> list[str]:
    return output.heading(change.id, f"{change.summary.phase}, {_verdict(findings, strict)}")


def _all(count: int, bad: Sequence[str]) -> str:
    if not count:
        return "No open changes."
    if not bad:
        return f"{pluralize(count, 'change')}, {'all ' if count > 1 else ''}valid"
    more = f" and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
    return f"{pluralize(count, 'change')}, {len(bad)} not valid: {', '.join(bad[:_NAMED])}{more}"


def _row(one: LocatedChange, findings: Sequence[RuleFinding], mended: list[str], strict: bool) -> dict[str, Any]:
    number = count_by_severity(findings)
    return {
        "change_id": one.id,
        "valid": is_valid(findings, strict),
        **{f"{severity}_count": count for severity, count in number.items()},
        "findings": [
            {name: getattr(finding, name) for name in ("file", "line", "rule", "severity", "message", "hint")}
            for finding in findings
        ],
        "mended": mended,
    }


def _lines(one: LocatedChange, findings: Sequence[RuleFinding]) -> list[str]:
    folder = os.path.relpath(one.folder or "")
    lines = []
    for finding in findings:
        severity = output.paint(finding.severity, fg=_COLOURS[finding.severity])
        lines += output.prose(f"{folder}/{finding.file}:{finding.line}: {severity}: {finding.message}", hang="  ")
        lines += [output.paint(line, dim=True) for line in output.prose(f"{finding.rule}: {finding.hint}", "    ")]
    return lines


def _verdict(findings: Sequence[RuleFinding], strict: bool) -> str:
    words = output.findings(*count_by_severity(findings).values())
    if is_valid(findings, strict):
        return "valid" if words == "-" else f"valid, with {words}"
    return f"not valid, {words}"


def _show_diff(
    changes: Sequence[LocatedChange], mended: dict[str, dict[str, tuple[bytes, bytes]]], as_json: bool
) -> int:
    import difflib  # late: only here

    lines: list[str] = []
    for one in changes:
        folder = os.path.relpath(one.folder or "")
        for name, (old, new) in mended[one.id].items():
            before, after = (data.decode(errors="replace").splitlines() for data in (old, new))
            lines += difflib.unified_diff(before, after, f"{folder}/{name}", f"{folder}/{name} (mended)", lineterm="")
    text = "\n".join(lines)
    data = {"diff": text, "mended": {key: sorted(value) for key, value in mended.items()}}
    return output.show_result("validate", as_json, data, lambda: text or "Nothing to mend.")
