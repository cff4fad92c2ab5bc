"""Rules for a spec: requirements and scenarios, whole or delta."""

import re

from agentd.documents.spec import Scenario, Spec
from agentd.documents.text import Document, Span
from agentd.rules.finding import Findings, Settings
from agentd.rules.plan import Page

_UNTITLED = re.compile(r"(?:[A-Z]+-)?R\d+\s*[:.–—-]*$")
_WHEN = re.compile(r"\bWHEN\b")
_THEN = re.compile(r"\bTHEN\b")
_DEFAULT_SCENARIO = r"(?s)\bWHEN\b.*?\bTHEN\b"
_LONGEST = 65536  # a pattern of one's own is not let loose on more


def check_spec(page: Page, spec: Spec, main: Spec | None, settings: Settings, findings: Findings) -> None:
    name = page.name
    _requirements(name, spec, findings)
    _scenarios(name, spec, page.document, settings, findings)
    _references(name, spec, main, findings)
    for text, line in spec.unread:
        hint = "write `- R3: Title`, `- Scenario: Title` or `- R4: Old → R4: New`"
        findings.add(name, line, "requirement-format", f"'{text[:60]}' names no requirement or scenario", hint)


def only_takes_away(spec: Spec) -> bool:
    """A delta may do nothing but remove and rename; then it needs no requirement and no scenario."""
    return not spec.requirements and bool(spec.removed or spec.renamed)


def _requirements(name: str, spec: Spec, findings: Findings) -> None:
    for heading in spec.strays:
        if _UNTITLED.fullmatch(heading.title):
            hint = f"write `### {heading.title.rstrip(' :.–—-')}: Title`"
            findings.add(name, heading.line, "requirement-untitled", f"{heading.title} has no title", hint)
        else:
            message = f"'{heading.title[:60]}' cannot be read as a requirement"
            findings.add(name, heading.line, "requirement-format", message, "write `### R1: Title`")
    first: dict[str, int] = {}
    for requirement in spec.requirements:
        line = first.setdefault(requirement.id, requirement.line)
        if line != requirement.line:
            message = f"{requirement.id} stands twice, first on line {line}"
            findings.add(name, requirement.line, "requirement-duplicate", message, "give it a free id")
    gone = {one.id for one in spec.removed if one.id}
    for requirement in spec.requirements:
        if requirement.id in gone:
            message = f"{requirement.id} is written here and removed as well"
            findings.add(name, requirement.line, "requirement-duplicate", message, "keep one of the two")
    if not spec.requirements and not spec.strays and not only_takes_away(spec):
        line = spec.lines.get("requirements", 1)
        hint = "write `### R1: Title` and below it what must hold"
        findings.add(name, line, "requirement-format", "there is no requirement", hint)


def _scenarios(name: str, spec: Spec, document: Document, settings: Settings, findings: Findings) -> None:
    for scenario in spec.scenarios:
        if not _is_well_formed(scenario, document, settings.scenario_pattern):
            message = f"the scenario '{scenario.name[:60]}' does not say WHEN and THEN"
            hint = "write `- **WHEN** what happens` and `- **THEN** what must follow`"
            findings.add(name, scenario.line, "scenario-format", message, hint)
    missing = settings.scenario_min_count - len(spec.scenarios)
    if missing > 0 and not only_takes_away(spec):
        line = spec.lines.get("acceptance_criteria", 1)
        message = f"{len(spec.scenarios)} scenarios; at least {settings.scenario_min_count} must be there"
        hint = "write `### Scenario: Name` with WHEN and THEN lines"
        findings.add(name, line, "scenario-count", message, hint)


def _is_well_formed(scenario: Scenario, document: Document, pattern: re.Pattern[str]) -> bool:
    if pattern.pattern == _DEFAULT_SCENARIO:
        if scenario.when and scenario.then:
            return True
        text = _text(document, scenario.span)
        when = _WHEN.search(text)  # in two looks: the pattern as a whole is quadratic
        return bool(when and _THEN.search(text, when.end()))
    return bool(pattern.search(_text(document, scenario.span)[:_LONGEST]))


def _text(document: Document, span: Span) -> str:
    return "\n".join(content for _, content in document.plain(span))


def _references(name: str, spec: Spec, main: Spec | None, findings: Findings) -> None:
    """What a scenario, a removal or a rename points at is there, here or in the main spec."""
    there = {one.id for one in main.requirements} if main else set()
    either = there | {one.id for one in spec.requirements}
    titles = {one.name for one in main.scenarios} if main else set()
    pointed = [(one.line, one.requirement) for one in spec.scenarios if one.requirement]
    _unknown(name, pointed, either, findings)
    if main:
        removed = [(one.span.start, one.id) for one in spec.removed if one.id]
        renamed = [(one.span.start, one.old.id) for one in spec.renamed]
        _unknown(name, removed + renamed, there, findings)
        _unknown(name, [(one.span.start, one.title) for one in spec.removed if not one.id], titles, findings)
    elif spec.removed or spec.renamed:
        line = spec.lines.get("removed") or spec.lines.get("renamed", 1)
        message = "it removes or renames, but the project has no such spec yet"
        findings.add(name, line, "spec-ref-unknown", message, "leave `## Removed` and `## Renamed` out of a new spec")


def _unknown(name: str, pointed: list[tuple[int, str]], known: set[str], findings: Findings) -> None:
    missing = [(line, what) for line, what in pointed if what not in known]
    if missing:
        hint = f"these are there: {', '.join(sorted(known)[:20])}" if known else "there are none to refer to"
        for line, what in missing:
            findings.add(name, line, "spec-ref-unknown", f"{what[:60]} is not there", hint)
