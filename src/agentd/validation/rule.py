"""What a rule is, what it receives, and what it reports."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agentd.documents import Document, Frontmatter, Proposal, Spec, TaskList
from agentd.domain import Severity

DOCUMENT_KINDS = {"proposal.md": "proposal", "tasks.md": "tasks", "clarifications.md": "clarifications"}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule with its default severity. If not configurable, it cannot be turned off or given another severity."""

    name: str
    severity: Severity
    description: str
    is_configurable: bool = True


@dataclass(frozen=True, slots=True, order=True)
class RuleFinding:
    """What a rule found: where, what is wrong, and how to fix it."""

    file: str
    line: int
    rule: str
    severity: Severity
    message: str
    hint: str


class RuleSettings(Protocol):
    """The `[validation]` section of the configuration. A rule whose severity is None is off."""

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


@dataclass(frozen=True)
class PlanDocuments:
    """The documents to validate.

    `texts` are by short name; `main` has the project's own specs by id; `exists` takes paths relative to the project
    root. Documents may be missing while a plan is being written; `complete` says that all of them should exist.
    """

    texts: Mapping[str, bytes]
    main: Mapping[str, Spec] = field(default_factory=dict)
    complete: bool = True
    folder: str = ""
    exists: Callable[[str], bool] = lambda path: False


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """A readable document; a proposal comes without its review blocks. Only specs have `spec`."""

    name: str
    kind: str
    document: Document
    front: Frontmatter
    spec: Spec | None = None


class PlanValidation:
    """One validation: the input of the rules, and the findings they add.

    `specs`, `proposal` and `tasks` are set once all documents are read. A spec that is unreadable, or partly hidden by
    an unclosed code fence or comment, is not in `specs`.
    """

    def __init__(self, plan: PlanDocuments, settings: RuleSettings) -> None:
        self.plan = plan
        self.settings = settings
        self.specs: dict[str, Spec] = {}
        self.proposal: Proposal | None = None
        self.tasks: TaskList | None = None
        self.found: list[RuleFinding] = []

    def add(self, file: str, line: int, rule: Rule, message: str, hint: str) -> None:
        severity = self.settings.severity[rule.name] if rule.is_configurable else rule.severity
        if severity is not None:
            self.found.append(RuleFinding(file, line, rule.name, severity, message, hint))


DocumentCheck = Callable[[PlanDocument, PlanValidation], None]
PlanCheck = Callable[[PlanValidation], None]
DOCUMENT_CHECKS: list[DocumentCheck] = []
PLAN_CHECKS: list[PlanCheck] = []


def document_check(check: DocumentCheck) -> DocumentCheck:
    """Register a check that runs on every readable document."""
    DOCUMENT_CHECKS.append(check)
    return check


def plan_check(check: PlanCheck) -> PlanCheck:
    """Register a check that runs once, after all documents are read."""
    PLAN_CHECKS.append(check)
    return check


def count_by_severity(findings: Iterable[RuleFinding]) -> dict[Severity, int]:
    counts = dict.fromkeys(Severity, 0)
    for finding in findings:
        counts[finding.severity] += 1
    return counts


def is_valid(findings: Iterable[RuleFinding], strict: bool = False) -> bool:
    """Return whether a change is valid: no high finding or, if strict, no finding at all."""
    return not any(strict or finding.severity is Severity.HIGH for finding in findings)


def spec_id(name: str) -> str:
    return name.removeprefix("specs/").removesuffix(".md")
