"""Rules for a spec: requirements, scenarios and what they refer to, in a whole spec or a delta."""

import re

from agentd.documents import Document, Scenario, Span, Spec
from agentd.domain import Severity
from agentd.validation.rule import PlanDocument, PlanValidation, Rule, document_check

_UNTITLED = re.compile(r"(?:[A-Z]+-)?R\d+\s*[:.–—-]*$")
_LIKE = re.compile(r"\brequirement\b|(?<![a-z0-9])(?:[a-z]++-)?(?:n?f?r|req)-?\d", re.IGNORECASE)
_WORDS = re.compile(r"\w(?:[\w.-]*\w)?")
_ID = re.compile(r"(?<![\w-])(?:[A-Za-z]++-)*+[A-Za-z]++\d++")
_NUMBERED = re.compile(r"requirement\s++(\d++)", re.IGNORECASE)
_LETTER = re.compile(r"[^\W_]")
_WHEN = re.compile(r"\bWHEN\b")
_THEN = re.compile(r"\bTHEN\b")
_DEFAULT_SCENARIO = r"(?s)\bWHEN\b.*?\bTHEN\b"
_LONGEST = 65536  # characters that a configured pattern is searched in


def only_removes(spec: Spec) -> bool:
    """Whether a delta only removes and renames; then it needs no requirement and no scenario."""
    return not spec.requirements and bool(spec.removed or spec.renamed)


def stray_ids(spec: Spec) -> set[str]:
    """The ids in headings that are not readable as requirements; references to those are not reported again."""
    words = {word for one in spec.strays for part in (_WORDS, _ID) for word in part.findall(one.title)}
    return words | {f"R{match[1]}" for heading in spec.strays for match in _NUMBERED.finditer(heading.title)}


REQUIREMENT_FORMAT = Rule("requirement-format", Severity.HIGH, "a heading or entry cannot be read as a requirement")
REQUIREMENT_DUPLICATE = Rule(
    "requirement-duplicate", Severity.HIGH, "a requirement or scenario occurs twice, or is both written and removed"
)
REQUIREMENT_UNTITLED = Rule("requirement-untitled", Severity.MEDIUM, "a requirement has no title or no text")


@document_check
def check_requirements(page: PlanDocument, run: PlanValidation) -> None:
    spec, name = page.spec, page.name
    if spec is None:
        return
    for heading in spec.strays:
        if spec.requirements and not _LIKE.search(heading.title):
            continue  # notes, or the name of a group
        if _UNTITLED.fullmatch(heading.title):
            hint = f"write `### {heading.title.rstrip(' :.–—-')}: Title`"
            run.add(name, heading.line, REQUIREMENT_UNTITLED, f"{heading.title} has no title", hint)
        else:
            message = f"'{heading.title[:60]}' cannot be read as a requirement"
            run.add(name, heading.line, REQUIREMENT_FORMAT, message, "write `### R1: Title`")
    first: dict[str, int] = {}
    removed = {one.id for one in spec.removed if one.id}
    for requirement in spec.requirements:
        line = first.setdefault(requirement.id, requirement.line)
        if line != requirement.line:
            message = f"{requirement.id} occurs twice, first on line {line}"
            run.add(name, requirement.line, REQUIREMENT_DUPLICATE, message, "give it an unused id")
        if not requirement.text and requirement.own == (requirement.span,):
            hint = f"write below `### {requirement.id}: …` what must hold"
            run.add(name, requirement.line, REQUIREMENT_UNTITLED, f"{requirement.id} has no text", hint)
        if requirement.id in removed:
            message = f"{requirement.id} is both written and removed here"
            run.add(name, requirement.line, REQUIREMENT_DUPLICATE, message, "keep one of the two")
    if not spec.requirements and not spec.strays and not only_removes(spec) and not page.document.closing:
        line = spec.lines.get("requirements", 1)
        hint = "write `### R1: Title` and below it what must hold"
        run.add(name, line, REQUIREMENT_FORMAT, "there is no requirement", hint)
    for text, line in spec.unread:
        hint = "write `- R3: Title`, `- Scenario: Title` or `- R4: Old → R4: New`"
        run.add(name, line, REQUIREMENT_FORMAT, f"'{text[:60]}' names no requirement or scenario", hint)


SCENARIO_FORMAT = Rule("scenario-format", Severity.HIGH, "a scenario does not say WHEN and THEN")
SCENARIO_COUNT = Rule("scenario-count", Severity.HIGH, "a spec has fewer scenarios than scenario_min_count")


@document_check
def check_scenarios(page: PlanDocument, run: PlanValidation) -> None:
    spec, document, settings = page.spec, page.document, run.settings
    if spec is None:
        return
    first: dict[tuple[str, str], int] = {}
    for scenario in spec.scenarios:
        line = first.setdefault((scenario.requirement, scenario.name), scenario.line)
        if line != scenario.line and scenario.requirement and scenario.name:
            message = f"the scenario '{scenario.name[:60]}' occurs twice, first on line {line}"
            run.add(page.name, scenario.line, REQUIREMENT_DUPLICATE, message, "give it another name")
        if not _is_well_formed(scenario, document, settings.scenario_pattern):
            message = f"the scenario '{scenario.name[:60]}' does not say WHEN and THEN"
            hint = "write `- **WHEN** what happens` and `- **THEN** what must follow`"
            run.add(page.name, scenario.line, SCENARIO_FORMAT, message, hint)
    missing = settings.scenario_min_count - len(spec.scenarios)
    if missing > 0 and not only_removes(spec) and not document.closing:
        line = spec.lines.get("acceptance_criteria", 1)
        message = f"{len(spec.scenarios)} scenarios, but at least {settings.scenario_min_count} are required"
        hint = "write `### Scenario: Name` with WHEN and THEN lines"
        run.add(page.name, line, SCENARIO_COUNT, message, hint)


def _is_well_formed(scenario: Scenario, document: Document, pattern: re.Pattern[str]) -> bool:
    if pattern.pattern == _DEFAULT_SCENARIO:
        if scenario.when and scenario.then:
            return True
        text = _text(document, scenario.span)
        when = _WHEN.search(text)  # one at a time: the whole pattern is quadratic
        then = _THEN.search(text, when.end()) if when else None
        return bool(
            when
            and then
            and _LETTER.search(text, when.end(), then.start())
            and _LETTER.search(text[then.end() :].partition("\n\n")[0])
        )
    return bool(pattern.search(_text(document, scenario.span)[:_LONGEST]))


def _text(document: Document, span: Span) -> str:
    return "\n".join(content for _, content in document.plain_lines(span))
