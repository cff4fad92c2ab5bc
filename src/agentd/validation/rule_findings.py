"""What a rule finds, and what can be set about rules."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from agentd.documents import InvalidFrontmatter
from agentd.domain import Severity

# These cannot be turned off: without a document, or with two in one, there is nothing to go on.
ALWAYS_HIGH = frozenset({"unreadable", "document-missing", "conflict-mark"})


@dataclass(frozen=True, slots=True, order=True)
class RuleFinding:
    """Where, what is wrong, and what would be right."""

    file: str
    line: int
    rule: str
    severity: Severity
    message: str
    hint: str


class RuleSettings(Protocol):
    """The `[validation]` part of the configuration; a rule without a severity is off."""

    @property
    def requirement_pattern(self) -> re.Pattern[str]: ...
    @property
    def scenario_pattern(self) -> re.Pattern[str]: ...
    @property
    def scenario_min_count(self) -> int: ...
    @property
    def required_headings(self) -> Mapping[str, tuple[str, ...]]: ...
    @property
    def max_lines(self) -> Mapping[str, int]: ...
    @property
    def severity(self) -> Mapping[str, Severity | None]: ...


class FindingCollector:
    """Collects what rules find, graded by the settings."""

    def __init__(self, settings: RuleSettings) -> None:
        self._severity = settings.severity
        self.found: list[RuleFinding] = []

    def add(self, file: str, line: int, rule: str, message: str, hint: str) -> None:
        severity = Severity.HIGH if rule in ALWAYS_HIGH else self._severity[rule]
        if severity is not None:
            self.found.append(RuleFinding(file, line, rule, severity, message, hint))

    def bad_frontmatter(self, error: InvalidFrontmatter) -> None:
        hint = "write the frontmatter as `key: value` lines between two lines `---`"
        self.add(error.file, error.line, "frontmatter-invalid", error.problem, hint)


def count_by_severity(findings: Iterable[RuleFinding]) -> dict[Severity, int]:
    found = dict.fromkeys(Severity, 0)
    for finding in findings:
        found[finding.severity] += 1
    return found


def is_valid(findings: Iterable[RuleFinding], strict: bool = False) -> bool:
    """High findings make a change invalid; strictly, any does."""
    return not any(strict or finding.severity is Severity.HIGH for finding in findings)
