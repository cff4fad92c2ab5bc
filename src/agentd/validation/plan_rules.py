"""Rules about a plan's content and consistency: links, spec references, tasks, coverage, length."""

import posixpath
import re
from collections.abc import Callable
from urllib.parse import unquote

from agentd.documents import (
    PROPOSAL_FILE,
    TASKS_FILE,
    Document,
    cycle_message,
    dependency_cycle,
    spec_order,
    unknown_dependencies,
)
from agentd.domain import Severity
from agentd.validation.document_rules import FRONTMATTER_INVALID, HEADING_MISSING, stray_ids
from agentd.validation.rule import PlanDocument, PlanValidation, Rule, document_check, plan_check, spec_id

_PLACEHOLDER = re.compile(r"\b(?:TODO|TBD|FIXME)\b")
_CODE = re.compile(r"(`+)(?:(?!\1).)*+\1")
# Lower case counts only alone on a line or in a list item.
_LATER = re.compile(r"^[ \t]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?[*_(]*+(todo|tbd)[*_).:…]*+[ \t\r]*+$", re.I | re.M)
_LINK = re.compile(r"!?\[[^\]\n]*+\]\(\s*+(?:<([^<>\n]++)>|(?!<)([^)\s>]++))")
_ELSEWHERE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*+:|//|#")
_TASK_FORM = "write `### Task 1.1: Title` with a yaml block of id, file, action, spec_ref, depends_on and status"

DOCUMENT_MISSING = Rule("document-missing", Severity.HIGH, "the plan lacks a document", is_configurable=False)


@plan_check
def check_missing_documents(run: PlanValidation) -> None:
    for name in (PROPOSAL_FILE, TASKS_FILE) if run.plan.complete else ():
        if name not in run.plan.texts:
            run.add(name, 1, DOCUMENT_MISSING, f"there is no {name}", "agentd plan writes it")


PLACEHOLDER = Rule("placeholder", Severity.MEDIUM, "TODO, TBD or FIXME is left in the text")


@document_check
def check_placeholders(page: PlanDocument, run: PlanValidation) -> None:
    found = _matches(page.document, _PLACEHOLDER, lambda match: match[0])
    lower = page.document.text.lower()
    if "todo" in lower or "tbd" in lower:
        found += [one for one in _matches(page.document, _LATER, lambda match: match[1]) if not one[1].isupper()]
    for line, word in found:
        hint = "fill it in, or put the word in backticks if it is meant literally"
        run.add(page.name, line, PLACEHOLDER, f"{word} is left in the text", hint)


LINK_BROKEN = Rule("link-broken", Severity.MEDIUM, "a link leads to a file that does not exist")


@document_check
def check_links(page: PlanDocument, run: PlanValidation) -> None:
    plan = run.plan
    if "](" not in page.document.text:
        return
    for line, target in _matches(page.document, _LINK, lambda match: match[1] or match[2]):
        path = unquote(target.partition("#")[0])
        if _ELSEWHERE.match(target) or not path:
            continue
        near = posixpath.normpath(posixpath.join(plan.folder, posixpath.dirname(page.name), path))
        if not (plan.exists(near) or plan.exists(posixpath.normpath(path.lstrip("/")))):
            hint = f"write the path from {page.name} or from the project's root"
            run.add(page.name, line, LINK_BROKEN, f"{path} does not exist", hint)


def _matches(
    document: Document, pattern: re.Pattern[str], word: Callable[[re.Match[str]], str]
) -> list[tuple[int, str]]:
    """Return each match outside code and comments with its line. Most documents have none, so search the text first."""
    if not pattern.search(document.text):
        return []
    found = []
    for line, content in document.plain_lines(document.span):
        if pattern.search(content):
            bare = _CODE.sub(lambda code: " " * len(code[0]), content) if "`" in content else content
            found += [(line, word(match)) for match in pattern.finditer(bare)]
    return found


SPEC_MISSING = Rule("spec-missing", Severity.HIGH, "the proposal names a spec that has no file")
SPEC_UNNAMED = Rule("spec-unnamed", Severity.MEDIUM, "a spec is not named in the proposal")
SPEC_REF_UNKNOWN = Rule(
    "spec-ref-unknown", Severity.HIGH, "a reference to a spec, requirement or scenario leads nowhere"
)


@plan_check
def check_named_specs(run: PlanValidation) -> None:
    """Check that the proposal names exactly the spec files present, and that they can be written in some order."""
    proposal, plan = run.proposal, run.plan
    if proposal is None:
        return
    named = {spec.id: spec for spec in proposal.impact.affected_specs}
    default_line = proposal.lines.get("affected_specs", 1)
    for word, line in proposal.unread:
        hint = "name specs like `auth-flow`: lower-case letters, digits and dashes"
        run.add(PROPOSAL_FILE, line, SPEC_REF_UNKNOWN, f"'{word[:60]}' is not a spec id", hint)
    for spec in named.values():
        if plan.complete and f"specs/{spec.id}.md" not in plan.texts:
            message = f"the spec {spec.id} is named, but specs/{spec.id}.md does not exist"
            run.add(PROPOSAL_FILE, spec.line or default_line, SPEC_MISSING, message, "write it, or remove the name")
    for name in plan.texts:
        if name.startswith("specs/") and spec_id(name) not in named:
            hint = "add it to affected_specs in proposal.md, or delete the file"
            run.add(name, 1, SPEC_UNNAMED, "the proposal does not name this spec", hint)
    order = spec_order(proposal.impact, tuple(plan.main))
    for id_, other in order.unknown:
        message = f"{id_} depends on {other}, which is neither affected nor in agentd/specs/"
        hint = f"name {other} among the affected specs, or drop the dependency"
        run.add(PROPOSAL_FILE, named[id_].line or default_line, DEPENDENCY_UNKNOWN, message, hint)
    if order.cycle:
        line = named[order.cycle[0]].line or default_line
        message = f"Circular dependency detected: {' → '.join(order.cycle)}"
        run.add(PROPOSAL_FILE, line, DEPENDENCY_CYCLE, message, "drop one of these dependencies")


@document_check
def check_spec_references(page: PlanDocument, run: PlanValidation) -> None:
    """Check that what scenarios, removals and renames refer to exists, here or in the main spec."""
    spec = page.spec
    if spec is None:
        return
    main = run.plan.main.get(spec_id(page.name))
    main_ids = {one.id for one in main.requirements} if main else set()
    strays = stray_ids(spec) if spec.strays else set()
    # References to other specs are not checked, and unreadable headings are reported elsewhere.
    references = [
        (scenario.line, id_)
        for scenario in spec.scenarios
        for id_ in (scenario.requirement, *scenario.also)
        if id_ and ":" not in id_ and id_ not in strays
    ]
    _report_unknown(page.name, references, main_ids | {one.id for one in spec.requirements}, run)
    if main:
        changed = [(one.span.start, one.id) for one in spec.removed if one.id]
        changed += [(one.span.start, one.old.id) for one in spec.renamed]
        _report_unknown(page.name, changed, main_ids, run)
        scenarios = [(one.span.start, one.title) for one in spec.removed if not one.id]
        _report_unknown(page.name, scenarios, {one.name for one in main.scenarios}, run)
    elif spec.removed or spec.renamed:
        line = spec.lines.get("removed") or spec.lines.get("renamed", 1)
        message = "it removes or renames, but the project has no such spec yet"
        run.add(page.name, line, SPEC_REF_UNKNOWN, message, "leave `## Removed` and `## Renamed` out of a new spec")


def _report_unknown(name: str, references: list[tuple[int, str]], known: set[str], run: PlanValidation) -> None:
    missing = [(line, what) for line, what in references if what not in known]
    if missing:
        hint = f"choose one of {', '.join(sorted(known)[:20])}" if known else "there are none to refer to"
        for line, what in missing:
            run.add(name, line, SPEC_REF_UNKNOWN, f"{what[:60]} does not exist", hint)


TASK_FORMAT = Rule("task-format", Severity.HIGH, "a task cannot be read")
TASK_DUPLICATE = Rule("task-duplicate", Severity.HIGH, "two tasks have the same id")
TASK_PATH = Rule("task-path", Severity.HIGH, "a task's file is not a path inside the project")
DEPENDENCY_UNKNOWN = Rule("dependency-unknown", Severity.HIGH, "a task or spec depends on one that does not exist")
DEPENDENCY_CYCLE = Rule("dependency-cycle", Severity.HIGH, "tasks or specs depend on each other in a circle")


@plan_check
def check_tasks(run: PlanValidation) -> None:
    if run.tasks is None:
        return
    tasks = run.tasks.tasks
    reported = {one.line for one in run.found if one.file == TASKS_FILE and one.rule == HEADING_MISSING.name}
    rules = {"frontmatter": FRONTMATTER_INVALID, "task-duplicate": TASK_DUPLICATE}
    for fault in run.tasks.faults:
        if fault.rule == "task-yaml" and fault.line in reported:
            continue  # caused by an unclosed code fence
        what, _, hint = fault.message.partition("; ")
        run.add(TASKS_FILE, fault.line, rules.get(fault.rule, TASK_FORMAT), what, hint or _TASK_FORM)
    for task in tasks:
        for file in task.files:
            if problem := path_problem(file.path):
                message = f"task {task.id}: {file.path} {problem}"
                hint = "write a path from the project's root, with `/`, such as src/notes/user.py"
                run.add(TASKS_FILE, file.line or task.line, TASK_PATH, message, hint)
    hint = f"the tasks are {', '.join(one.id for one in tasks[:20])}"
    for task, other in unknown_dependencies(tasks):
        message = f"task {task.id} depends on {other}, which is not a task"
        run.add(TASKS_FILE, task.at("depends_on"), DEPENDENCY_UNKNOWN, message, hint)
    if cycle := dependency_cycle(tasks):
        first = run.tasks.get(cycle[0])
        line = first.at("depends_on") if first else 1
        run.add(TASKS_FILE, line, DEPENDENCY_CYCLE, cycle_message(cycle), "drop one of these dependencies")


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
    return "is not a file" if inside == ["."] or not path.strip() else None


REQUIREMENT_WITHOUT_TASK = Rule("requirement-without-task", Severity.MEDIUM, "no task works on a requirement")
TASK_WITHOUT_REQUIREMENT = Rule("task-without-requirement", Severity.LOW, "a task has no spec_ref")


@plan_check
def check_coverage(run: PlanValidation) -> None:
    """Check that every requirement has a task and every task a requirement. Skip unreadable specs."""
    if run.tasks is None:
        return
    specs, main = run.specs, run.plan.main
    unread = {spec_id(name) for name in run.plan.texts if name.startswith("specs/")} - set(specs)
    known = {f"{name}:{one.id}" for name, spec in specs.items() for one in spec.requirements}
    strays = {f"{name}:{id_}" for name, spec in specs.items() if spec.strays for id_ in stray_ids(spec)}
    hint = f"choose one of {', '.join(sorted(known)[:20])}" if known else "leave spec_ref out"
    for task in run.tasks.tasks:
        for reference in task.spec_refs:
            name, _, wanted = reference.partition(":")
            # A task may also refer to the project's own spec, including a requirement that the change removes.
            is_main = name in main and main[name].requirement(wanted) is not None
            if reference not in known and reference not in strays and name not in unread and not is_main:
                message = f"task {task.id}: {reference} does not exist"
                run.add(TASKS_FILE, task.at("spec_ref"), SPEC_REF_UNKNOWN, message, hint)
        if specs and not task.spec_refs:
            message = f"task {task.id} belongs to no requirement"
            run.add(TASKS_FILE, task.line, TASK_WITHOUT_REQUIREMENT, message, "add `spec_ref: <spec>:R1`")
    covered = {reference for task in run.tasks.tasks for reference in task.spec_refs}
    for name, spec in specs.items():
        for requirement in spec.requirements:
            if f"{name}:{requirement.id}" not in covered:
                message = f"no task works on {requirement.id}: {requirement.title[:60]}"
                fix = f"add a task with `spec_ref: {name}:{requirement.id}`"
                run.add(f"specs/{name}.md", requirement.line, REQUIREMENT_WITHOUT_TASK, message, fix)


TOO_LONG = Rule("too-long", Severity.LOW, "a document is longer than max_lines")


@document_check
def check_length(page: PlanDocument, run: PlanValidation) -> None:
    lines, limit = len(page.document.contents), run.settings.max_lines[page.kind]
    if lines > limit:
        message = f"{lines} lines are more than the limit of {limit}"
        run.add(page.name, limit + 1, TOO_LONG, message, "shorten it, or split the change in two")


# Reported by agentd.trace, during impl.
CODE_RULES = (
    Rule("requirement-without-file", Severity.MEDIUM, "no file of a requirement's tasks has changed"),
    Rule("requirement-without-test", Severity.MEDIUM, "no test says that it covers a requirement"),
    Rule("file-without-task", Severity.LOW, "a file has changed that no task names"),
    Rule("test-weakened", Severity.HIGH, "an existing test proves less than before"),
)
