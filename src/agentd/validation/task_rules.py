"""Rules for tasks.md: form, paths, dependencies."""

import posixpath

from agentd.documents import TASKS_FILE, TaskList, cycle_message, dependency_cycle, unknown_dependencies
from agentd.validation.rule_findings import FindingCollector

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
