"""Findings of pip-audit, npm audit and cargo audit, parsed from their text or JSON (pure).

Severity is never high: an audit fails because of new advisories, not because of the change.
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from agentd.checks.result import SUGGESTION, CheckProblem
from agentd.domain import Severity

MAX_PROBLEMS = 20
_MAX_JSON_STARTS = 5  # most lines to try as the start of JSON
_SERIOUS = ("critical", "high")
_MAX_NOTE = 300  # most characters of an advisory's description

_PIP_HEAD = re.compile(r"Name +Version +ID +Fix Versions.*")
_PIP_LINE = re.compile(r"-+(?: -+){3,5}")
_NPM_HEAD = "# npm audit report"
_NPM_PACKAGE = re.compile(r"(\S+)  (\S.*)")
_NPM_ADVISORY = re.compile(r"(.+) - (https://\S+)")
_NPM_FIX = re.compile(r"Will install (\S+)@([^\s,@]+),.*")
_CARGO_FIELD = re.compile(r"(Crate|Version|Title|ID|Severity|Solution|Warning): +(.+)")


class _Advisory(NamedTuple):
    package: str
    version: str  # or the affected version range
    id: str
    note: str = ""
    severity: str = ""  # as rated by the advisory
    fixed: str = ""


def read_audit(output: str) -> tuple[CheckProblem, ...]:
    """Return the problems that an audit reports. Any other output has none."""
    lines = output.split("\n")
    advisories = list(islice(_advisories(output, lines), 50 * MAX_PROBLEMS))
    problems = [_problem(advisory) for advisory in dict.fromkeys(advisories)]
    if len(problems) <= MAX_PROBLEMS:
        return tuple(problems)
    more = f"{len(problems) - MAX_PROBLEMS + 1} more known vulnerabilities"
    last = CheckProblem(more, "Run the command yourself to see them all.", Severity.LOW)
    return (*problems[: MAX_PROBLEMS - 1], last)


def _advisories(output: str, lines: Sequence[str]) -> Iterator[_Advisory]:
    for data in _json(output):
        yield from (*_pip_json(data), *_npm_json(data), *_cargo_json(data))
    yield from (*_pip_text(lines), *_npm_text(lines), *_cargo_text(lines))


def _problem(advisory: _Advisory) -> CheckProblem:
    note = advisory.note.strip().partition("\n")[0][:_MAX_NOTE].rstrip(". ")
    sentences = [
        f"{note}." if note else "",
        f"The advisory rates it {advisory.severity}." if advisory.severity else "",
        f"Fixed in {advisory.fixed}." if advisory.fixed else "No fixed version is known.",
    ]
    return CheckProblem(
        title=f"{advisory.package} {advisory.version}".strip() + f": {advisory.id}",
        what=" ".join(sentence for sentence in sentences if sentence),
        severity=Severity.MEDIUM if any(word in advisory.severity.lower() for word in _SERIOUS) else Severity.LOW,
        suggestion=f"Upgrade {advisory.package} to {advisory.fixed}." if advisory.fixed else SUGGESTION,
    )


# ---- JSON


def _json(output: str) -> Iterator[dict[str, Any]]:
    """Yield JSON objects that begin at the start of a line."""
    for start in islice(re.finditer(r"^\{", output, re.MULTILINE), _MAX_JSON_STARTS):
        try:
            data, _ = json.JSONDecoder().raw_decode(output, start.start())
        except (ValueError, RecursionError):
            continue
        yield data


def _pip_json(data: dict[str, Any]) -> Iterator[_Advisory]:
    for package in _dicts(data.get("dependencies")):
        for row in _dicts(package.get("vulns")):
            fixed = ", ".join(map(str, _list(row.get("fix_versions"))))
            note = str(row.get("description") or "")
            yield _Advisory(_text(package, "name"), _text(package, "version"), _text(row, "id"), note, "", fixed)


def _npm_json(data: dict[str, Any]) -> Iterator[_Advisory]:
    packages = data.get("vulnerabilities") if "auditReportVersion" in data else None
    for package in _dicts(list(packages.values()) if isinstance(packages, dict) else None):
        fix = package.get("fixAvailable")
        fixed = _text(fix, "version") if isinstance(fix, dict) and fix.get("name") == package.get("name") else ""
        for row in _dicts(package.get("via")):  # a string names another package in this list
            id_ = _text(row, "url").rpartition("/")[2] or _text(row, "source")
            yield _Advisory(
                _text(package, "name"), _text(row, "range"), id_, _text(row, "title"), _text(row, "severity"), fixed
            )


def _cargo_json(data: dict[str, Any]) -> Iterator[_Advisory]:
    found = data.get("vulnerabilities")
    for row in _dicts(found.get("list") if isinstance(found, dict) else None):
        advisory, package, versions = (_dict(row.get(key)) for key in ("advisory", "package", "versions"))
        fixed = ", ".join(map(str, _list(versions.get("patched"))))
        yield _Advisory(
            _text(package, "name"),
            _text(package, "version"),
            _text(advisory, "id"),
            _text(advisory, "title"),
            "",
            fixed,
        )


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in _list(value) if isinstance(item, dict)]


def _text(row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    return str(value) if isinstance(value, str | int) else ""


# ---- text


def _pip_text(lines: Sequence[str]) -> Iterator[_Advisory]:
    """Parse a table; the line below its header gives the column widths."""
    spans: list[tuple[int, int]] = []
    for before, line in zip(("", *lines), lines, strict=False):
        if _PIP_HEAD.fullmatch(before) and _PIP_LINE.fullmatch(line.rstrip()):
            spans = [match.span() for match in re.finditer("-+", line)]
        elif spans and line.strip():
            cells = [line[start:end].strip() for start, end in spans]
            yield _Advisory(cells[0], cells[1], cells[2], cells[4] if len(cells) > 4 else "", "", cells[3])
        else:
            spans = []


def _npm_text(lines: Sequence[str]) -> Iterator[_Advisory]:
    """Parse one paragraph per package. Packages without an advisory only depend on one that has."""
    if _NPM_HEAD not in lines:
        return
    paragraph: list[str] = []
    for line in (*lines[lines.index(_NPM_HEAD) + 1 :], ""):
        if line.strip():
            paragraph.append(line)
            continue
        package = _NPM_PACKAGE.fullmatch(paragraph[0]) if paragraph else None
        if package:
            yield from _npm_paragraph(package[1], package[2], paragraph[1:])
        paragraph = []


def _npm_paragraph(package: str, versions: str, lines: Sequence[str]) -> Iterator[_Advisory]:
    severity = next((line[10:] for line in lines if line.startswith("Severity: ")), "")
    fixes = (match[2] for line in lines if (match := _NPM_FIX.fullmatch(line)) and match[1] == package)
    fixed = next(fixes, "")
    for line in lines:
        if advisory := _NPM_ADVISORY.fullmatch(line):
            yield _Advisory(package, versions, advisory[2].rpartition("/")[2], advisory[1], severity, fixed)


def _cargo_text(lines: Sequence[str]) -> Iterator[_Advisory]:
    fields: dict[str, str] = {}
    for line in (*lines, "Crate:  "):
        if line.startswith("Crate: ") and fields.keys() >= {"Crate", "ID"}:
            yield _cargo_advisory(fields)
        if line.startswith("Crate: "):
            fields = {}
        if field := _CARGO_FIELD.fullmatch(line.rstrip()):
            fields.setdefault(field[1], field[2])


def _cargo_advisory(fields: dict[str, str]) -> _Advisory:
    solution = fields.get("Solution", "")
    return _Advisory(
        fields["Crate"],
        fields.get("Version", ""),
        fields["ID"],
        fields.get("Title", ""),
        fields.get("Severity") or fields.get("Warning", ""),
        solution.removeprefix("Upgrade to ") if solution.startswith("Upgrade to ") else "",
    )
