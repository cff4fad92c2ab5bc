"""What a rule finds, and what can be set about rules."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agentd.documents import (
    Document,
    Frontmatter,
    InvalidDocument,
    InvalidFrontmatter,
    Spec,
    decode_text,
    parse_document,
    read_frontmatter,
    text_before_blocks,
)
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


DOCUMENT_KINDS = {"proposal.md": "proposal", "tasks.md": "tasks", "clarifications.md": "clarifications"}


def _nothing(path: str) -> bool:
    return False


@dataclass(frozen=True)
class PlanDocuments:
    """`texts` by short name; `main` are the project's own specs by id; `exists` knows paths from the project root.

    While a plan is being made, what is not there yet is not missing: `complete` says that it should be.
    """

    texts: Mapping[str, bytes]
    main: Mapping[str, Spec] = field(default_factory=dict)
    complete: bool = True
    folder: str = ""
    exists: Callable[[str], bool] = _nothing


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """A document that could be read, and what kind it is; a proposal without its review blocks."""

    name: str
    kind: str
    document: Document
    front: Frontmatter

    @property
    def spec_id(self) -> str:
        return spec_id(self.name)


def spec_id(name: str) -> str:
    return name.removeprefix("specs/").removesuffix(".md")


def open_document(name: str, data: bytes, findings: FindingCollector) -> PlanDocument | None:
    """None, with a finding, for what cannot be read any further."""
    try:
        text = decode_text(data, name)
        if name == "proposal.md" and "<review" in text:
            text = text_before_blocks(text).rstrip("\r\n") + "\n"
        document = parse_document(text, name)
        return PlanDocument(name, DOCUMENT_KINDS.get(name, "spec"), document, read_frontmatter(document))
    except InvalidFrontmatter as error:
        findings.bad_frontmatter(error)
    except InvalidDocument as error:
        findings.add(name, error.line, "unreadable", error.problem, "save the file as UTF-8 text")
    return None
