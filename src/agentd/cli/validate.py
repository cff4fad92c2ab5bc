"""`agentd validate`: check the documents of a change against the rules."""

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

COMMANDS = {"validate": (100, "Check the documents of a change against the rules.")}

_NAMED = 20  # invalid changes listed by name
_COLOURS = {"high": "red", "medium": "yellow", "low": None}


@click.command("validate")
@change_argument(required=False)
@click.option("--all", "everything", is_flag=True, help="Validate every open change that is checked out.")
@click.option("--strict", is_flag=True, help="Fail on any finding, not only high ones.")
@click.option("--fix", is_flag=True, help="Fix heading levels, requirement headings and frontmatter automatically.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, without writing anything.")
@output.json_option
@click.pass_context
def command(
    ctx: click.Context, change_id: str | None, everything: bool, strict: bool, fix: bool, diff: bool, as_json: bool
) -> int:
    """Check the documents of the change ID against the rules. Exit code 1: invalid."""
    if (change_id is None) != everything:
        raise UsageError("name one change, or use --all", "agentd validate <id>, or agentd validate --all")
    project = find_project()
    settings = load_config(project.config_file, flags=ctx.find_root().obj or ()).validation
    locator = ChangeLocator(project)
    changes = (
        [locator.find(check_change_id(change_id))]
        if change_id
        else [located for located in locator.open() if located.folder]
    )
    if change_id and changes[0].summary.problem:
        change = _change(project, changes[0])
        change.read(), change.records()  # raises for the unreadable file
    fixed = {}
    if fix or diff:
        fix_documents = fixed_documents if diff else write_fixes
        fixed = {item.id: _apply_fixes(fix_documents, _change(project, item), settings, everything) for item in changes}
    if diff:
        return _show_diff(changes, fixed, as_json)
    results = validate_changes(project, changes, settings)
    return _show(changes, results, {key: sorted(value) for key, value in fixed.items()}, strict, as_json, change_id)


def _apply_fixes(
    fix_documents: Any, change: Change, settings: ValidationSettings, everything: bool
) -> dict[str, tuple[bytes, bytes]]:
    try:
        fixed: dict[str, tuple[bytes, bytes]] = fix_documents(change, settings)
        return fixed
    except Busy as error:
        if not everything:
            raise
        output.report(f"{change.id} was not fixed: {error.message}")
        return {}


def _change(project: Project, found: LocatedChange) -> Change:
    return Change(project, found.id, found.tree or "", Path(found.folder or ""))


def _show(
    changes: Sequence[LocatedChange],
    results: Sequence[tuple[RuleFinding, ...]],
    fixed: dict[str, list[str]],
    strict: bool,
    as_json: bool,
    single: str | None,
) -> int:
    valid = all(is_valid(findings, strict) for findings in results)
    rows = [
        _row(change, findings, fixed.get(change.id, []), strict)
        for change, findings in zip(changes, results, strict=True)
    ]
    data = rows[0] if single else {"valid": valid, "changes": rows}

    def text() -> str:
        lines = [line for change, findings in zip(changes, results, strict=True) for line in _lines(change, findings)]
        fixes = [f"{change.id}: fixed {', '.join(fixed[change.id])}" for change in changes if fixed.get(change.id)]
        invalid = [
            change.id for change, findings in zip(changes, results, strict=True) if not is_valid(findings, strict)
        ]
        closing = (
            _single_verdict(changes[0], results[0], strict)
            if single
            else output.prose(_overall_verdict(len(changes), invalid))
        )
        return "\n".join([*lines, *fixes, *closing])

    return output.show_result("validate", as_json, data, text, 0 if valid else 1)


def _single_verdict(change: LocatedChange, findings: Sequence[RuleFinding], strict: bool) -> list[str]:
    return output.heading(change.id, f"{change.summary.phase}, {_verdict(findings, strict)}")


def _overall_verdict(count: int, invalid: Sequence[str]) -> str:
    if not count:
        return "No open changes."
    if not invalid:
        return f"{pluralize(count, 'change')}, {'all ' if count > 1 else ''}valid"
    more = f" and {len(invalid) - _NAMED} more" if len(invalid) > _NAMED else ""
    return f"{pluralize(count, 'change')}, {len(invalid)} invalid: {', '.join(invalid[:_NAMED])}{more}"


def _row(change: LocatedChange, findings: Sequence[RuleFinding], fixed: list[str], strict: bool) -> dict[str, Any]:
    counts = count_by_severity(findings)
    return {
        "change_id": change.id,
        "valid": is_valid(findings, strict),
        **{f"{severity}_count": count for severity, count in counts.items()},
        "findings": [
            {name: getattr(finding, name) for name in ("file", "line", "rule", "severity", "message", "hint")}
            for finding in findings
        ],
        "mended": fixed,
    }


def _lines(change: LocatedChange, findings: Sequence[RuleFinding]) -> list[str]:
    folder = os.path.relpath(change.folder or "")
    lines = []
    for finding in findings:
        severity = output.paint(finding.severity, fg=_COLOURS[finding.severity])
        lines += output.prose(f"{folder}/{finding.file}:{finding.line}: {severity}: {finding.message}", hang="  ")
        lines += [output.paint(line, dim=True) for line in output.prose(f"{finding.rule}: {finding.hint}", "    ")]
    return lines


def _verdict(findings: Sequence[RuleFinding], strict: bool) -> str:
    counts = output.findings(*count_by_severity(findings).values())
    if is_valid(findings, strict):
        return "valid" if counts == "-" else f"valid, with {counts}"
    return f"invalid, {counts}"


def _show_diff(
    changes: Sequence[LocatedChange], fixed: dict[str, dict[str, tuple[bytes, bytes]]], as_json: bool
) -> int:
    import difflib  # deferred: only needed here

    lines: list[str] = []
    for change in changes:
        folder = os.path.relpath(change.folder or "")
        for name, (old, new) in fixed[change.id].items():
            before, after = (data.decode(errors="replace").splitlines() for data in (old, new))
            lines += difflib.unified_diff(before, after, f"{folder}/{name}", f"{folder}/{name} (fixed)", lineterm="")
    text = "\n".join(lines)
    data = {"diff": text, "mended": {key: sorted(value) for key, value in fixed.items()}}
    return output.show_result("validate", as_json, data, lambda: text or "Nothing to fix.")
