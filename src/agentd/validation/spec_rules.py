"""Rules for a spec: requirements and scenarios, whole or delta."""

import posixpath
import re

from agentd.documents import (
    TASKS_FILE,
    Document,
    Scenario,
    Span,
    Spec,
    TaskList,
    cycle_message,
    dependency_cycle,
    unknown_dependencies,
)
from agentd.validation.rule_input import FindingCollector, PlanDocument, RuleSettings

_UNTITLED = re.compile(r"(?:[A-Z]+-)?R\d+\s*[:.–—-]*$")
_LIKE = re.compile(r"\brequirement\b|(?<![a-z0-9])(?:[a-z]++-)?(?:n?f?r|req)-?\d", re.IGNORECASE)
_WORDS = re.compile(r"\w(?:[\w.-]*\w)?")
_ID = re.compile(r"(?<![\w-])(?:[A-Za-z]++-)*+[A-Za-z]++\d++")
_NUMBERED = re.compile(r"requirement\s++(\d++)", re.IGNORECASE)
_LETTER = re.compile(r"[^\W_]")
_WHEN = re.compile(r"\bWHEN\b")
_THEN = re.compile(r"\bTHEN\b")
_DEFAULT_SCENARIO = r"(?s)\bWHEN\b.*?\bTHEN\b"
_LONGEST = 65536  # a pattern of one's own is not let loose on more


def check_spec(
    page: PlanDocument, spec: Spec, main: Spec | None, settings: RuleSettings, findings: FindingCollector
) -> None:
    name = page.name
    _requirements(name, spec, bool(page.document.closing), findings)
    _scenarios(name, spec, page.document, settings, findings)
    _references(name, spec, main, findings)
    for text, line in spec.unread:
        hint = "write `- R3: Title`, `- Scenario: Title` or `- R4: Old → R4: New`"
        findings.add(name, line, "requirement-format", f"'{text[:60]}' names no requirement or scenario", hint)


def only_removes(spec: Spec) -> bool:
    """A delta may do nothing but remove and rename; then it needs no requirement and no scenario."""
    return not spec.requirements and bool(spec.removed or spec.renamed)


def stray_ids(spec: Spec) -> set[str]:
    """The ids in headings that cannot be read as requirements; nobody else need be blamed for those."""
    words = {word for one in spec.strays for part in (_WORDS, _ID) for word in part.findall(one.title)}
    return words | {f"R{match[1]}" for heading in spec.strays for match in _NUMBERED.finditer(heading.title)}


def _requirements(name: str, spec: Spec, is_cut: bool, findings: FindingCollector) -> None:
    for heading in spec.strays:
        if spec.requirements and not _LIKE.search(heading.title):
            continue  # notes, or a name for a group
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
        if not requirement.text and requirement.own == (requirement.span,):
            hint = f"write below `### {requirement.id}: …` what must hold"
            findings.add(name, requirement.line, "requirement-untitled", f"{requirement.id} says nothing", hint)
        if requirement.id in gone:
            message = f"{requirement.id} is written here and removed as well"
            findings.add(name, requirement.line, "requirement-duplicate", message, "keep one of the two")
    if not spec.requirements and not spec.strays and not only_removes(spec) and not is_cut:
        line = spec.lines.get("requirements", 1)
        hint = "write `### R1: Title` and below it what must hold"
        findings.add(name, line, "requirement-format", "there is no requirement", hint)


def _scenarios(name: str, spec: Spec, document: Document, settings: RuleSettings, findings: FindingCollector) -> None:
    first: dict[tuple[str, str], int] = {}
    for scenario in spec.scenarios:
        line = first.setdefault((scenario.requirement, scenario.name), scenario.line)
        if line != scenario.line and scenario.requirement and scenario.name:
            message = f"the scenario '{scenario.name[:60]}' stands twice, first on line {line}"
            findings.add(name, scenario.line, "requirement-duplicate", message, "give it another name")
        if not _is_well_formed(scenario, document, settings.scenario_pattern):
            message = f"the scenario '{scenario.name[:60]}' does not say WHEN and THEN"
            hint = "write `- **WHEN** what happens` and `- **THEN** what must follow`"
            findings.add(name, scenario.line, "scenario-format", message, hint)
    missing = settings.scenario_min_count - len(spec.scenarios)
    if missing > 0 and not only_removes(spec) and not document.closing:
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


def _references(name: str, spec: Spec, main: Spec | None, findings: FindingCollector) -> None:
    """What a scenario, a removal or a rename points at is there, here or in the main spec."""
    there = {one.id for one in main.requirements} if main else set()
    either = there | {one.id for one in spec.requirements}
    titles = {one.name for one in main.scenarios} if main else set()
    pointed = [(one.line, id_) for one in spec.scenarios for id_ in (one.requirement, *one.also) if id_]
    strays = stray_ids(spec) if spec.strays else set()
    # Of another spec, or of a heading that is told of already, nothing is said.
    pointed = [(line, id_) for line, id_ in pointed if ":" not in id_ and id_ not in strays]
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


def _unknown(name: str, pointed: list[tuple[int, str]], known: set[str], findings: FindingCollector) -> None:
    missing = [(line, what) for line, what in pointed if what not in known]
    if missing:
        hint = f"these are there: {', '.join(sorted(known)[:20])}" if known else "there are none to refer to"
        for line, what in missing:
            findings.add(name, line, "spec-ref-unknown", f"{what[:60]} is not there", hint)


_RULES = {"frontmatter": "frontmatter-invalid", "task-duplicate": "task-duplicate"}
_FORM = "write `### Task 1.1: Title` with a yaml block of id, file, action, spec_ref, depends_on and status"


def check_tasks(tasks: TaskList, findings: FindingCollector) -> None:
    told = {one.line for one in findings.found if one.file == TASKS_FILE and one.rule == "heading-missing"}
    for fault in tasks.faults:
        if fault.rule == "task-yaml" and fault.line in told:
            continue  # a block left open
        what, _, instead = fault.message.partition("; ")
        findings.add(TASKS_FILE, fault.line, _RULES.get(fault.rule, "task-format"), what, instead or _FORM)
    for one in tasks.tasks:
        for file in one.files:
            problem = path_problem(file.path)
            if problem:
                hint = "write a path from the project's root, with `/`, such as src/notes/user.py"
                findings.add(
                    TASKS_FILE, file.line or one.line, "task-path", f"task {one.id}: {file.path} {problem}", hint
                )
    _dependencies(tasks, findings)


def path_problem(path: str) -> str | None:
    parts = path.split("/")
    if path.startswith(("/", "~")) or (len(path) > 1 and path[1] == ":"):
        return "is not relative"
    if "\\" in path:
        return "has a backslash"
    inside = posixpath.normpath(path).split("/")
    if inside[0] == ".." or ".." in parts:
        return "leads out of its folder"
    if inside[0].casefold() in ("agentd", ".git"):
        return "is not the project's own code"
    return "is no file" if inside == ["."] or not path.strip() else None


def _dependencies(tasks: TaskList, findings: FindingCollector) -> None:
    known = ", ".join(one.id for one in tasks.tasks[:20])
    for one, other in unknown_dependencies(tasks.tasks):
        message = f"task {one.id} depends on {other}, which is no task"
        findings.add(TASKS_FILE, one.at("depends_on"), "dependency-unknown", message, f"the tasks are {known}")
    circle = dependency_cycle(tasks.tasks)
    if circle:
        first = tasks.get(circle[0])
        line = first.at("depends_on") if first else 1
        findings.add(TASKS_FILE, line, "dependency-cycle", cycle_message(circle), "drop one of these dependencies")
