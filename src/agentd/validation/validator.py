"""All rules over one change."""

from collections.abc import Mapping

from agentd.documents import (
    PROPOSAL_FILE,
    InvalidFrontmatter,
    Proposal,
    Spec,
    TaskList,
    read_proposal,
    read_spec,
    read_tasks,
    spec_order,
)
from agentd.documents import TASKS_FILE as TASKS
from agentd.validation.document_rules import check_document
from agentd.validation.rule_input import (
    FindingCollector,
    PlanDocument,
    PlanDocuments,
    RuleFinding,
    RuleSettings,
    open_document,
    spec_id,
)
from agentd.validation.spec_rules import check_spec, check_tasks, only_removes, stray_ids


def check_missing(plan: PlanDocuments, findings: FindingCollector) -> None:
    if not plan.complete:
        return
    for name in (PROPOSAL_FILE, TASKS):
        if name not in plan.texts:
            findings.add(name, 1, "document-missing", f"there is no {name}", "agentd plan writes it")


def check_named_specs(proposal: Proposal, plan: PlanDocuments, findings: FindingCollector) -> None:
    """Specs named and specs present are the same, and they can be written in some order."""
    named = {spec.id: spec for spec in proposal.impact.affected_specs}
    line = proposal.lines.get("affected_specs", 1)
    for word, where in proposal.unread:
        hint = "name specs like `auth-flow`: lower-case letters, digits and dashes"
        findings.add(PROPOSAL_FILE, where, "spec-ref-unknown", f"'{word[:60]}' is no spec id", hint)
    for one in named.values():
        if plan.complete and f"specs/{one.id}.md" not in plan.texts:
            message = f"the spec {one.id} is named, but specs/{one.id}.md is not there"
            findings.add(PROPOSAL_FILE, one.line or line, "spec-missing", message, "write it, or take the name out")
    for name in plan.texts:
        if name.startswith("specs/") and spec_id(name) not in named:
            hint = "add it to affected_specs in proposal.md, or delete the file"
            findings.add(name, 1, "spec-unnamed", "the proposal does not name this spec", hint)
    order = spec_order(proposal.impact, tuple(plan.main))
    for one_id, other in order.unknown:
        message = f"{one_id} depends on {other}, which is neither affected nor in agentd/specs/"
        hint = f"name {other} among the affected specs, or drop the dependency"
        findings.add(PROPOSAL_FILE, named[one_id].line or line, "dependency-unknown", message, hint)
    if order.cycle:
        message = f"Circular dependency detected: {' → '.join(order.cycle)}"
        where = named[order.cycle[0]].line or line
        findings.add(PROPOSAL_FILE, where, "dependency-cycle", message, "drop one of these dependencies")


def check_coverage(
    tasks: TaskList, specs: Mapping[str, Spec], main: Mapping[str, Spec], unread: set[str], findings: FindingCollector
) -> None:
    """Every requirement has a task, every task a requirement. Of specs that could not be read nothing is said."""
    here = {f"{name}:{one.id}" for name, spec in specs.items() for one in spec.requirements}
    told = {f"{name}:{id_}" for name, spec in specs.items() if spec.strays for id_ in stray_ids(spec)}
    hint = f"these are there: {', '.join(sorted(here)[:20])}" if here else "leave spec_ref out"
    for task in tasks.tasks:
        for reference in task.spec_refs:
            name, _, wanted = reference.partition(":")
            if reference in here or reference in told or name in unread or _is_in(main.get(name), wanted):
                continue
            message = f"task {task.id}: {reference} is not there"
            findings.add(TASKS, task.at("spec_ref"), "spec-ref-unknown", message, hint)
        if specs and not task.spec_refs:
            message = f"task {task.id} belongs to no requirement"
            findings.add(TASKS, task.line, "task-without-requirement", message, "add `spec_ref: <spec>:R1`")
    covered = {reference for task in tasks.tasks for reference in task.spec_refs}
    for name, spec in specs.items():
        for requirement in spec.requirements:
            if f"{name}:{requirement.id}" not in covered:
                message = f"no task works on {requirement.id}: {requirement.title[:60]}"
                hint = f"add a task with `spec_ref: {name}:{requirement.id}`"
                findings.add(f"specs/{name}.md", requirement.line, "requirement-without-task", message, hint)


def _is_in(main: Spec | None, requirement: str) -> bool:
    """A task may also work on what the project's own spec says, a removed requirement included."""
    return main is not None and main.requirement(requirement) is not None


_NEEDLESS = frozenset({"Requirements", "Acceptance Criteria"})


def validate(plan: PlanDocuments, settings: RuleSettings) -> tuple[RuleFinding, ...]:
    """Sorted by file and line."""
    findings = FindingCollector(settings)
    check_missing(plan, findings)
    pages = [page for name, data in plan.texts.items() if (page := open_document(name, data, findings))]
    specs: dict[str, Spec] = {}
    for page in pages:
        if page.kind == "spec":
            _check_spec_page(page, plan, settings, findings, specs)
        else:
            check_document(page, plan, settings, findings)
    _check_whole(pages, plan, specs, findings)
    return tuple(sorted(findings.found))


def _check_spec_page(
    page: PlanDocument, plan: PlanDocuments, settings: RuleSettings, findings: FindingCollector, specs: dict[str, Spec]
) -> None:
    try:
        found = read_spec(page.document, page.front, settings.requirement_pattern)
    except InvalidFrontmatter as error:
        findings.bad_frontmatter(error)
        return
    if not page.document.closing:  # what is hidden may be there
        specs[page.spec_id] = found
    check_document(page, plan, settings, findings, _NEEDLESS if only_removes(found) else frozenset())
    check_spec(page, found, plan.main.get(page.spec_id), settings, findings)


def _check_whole(
    pages: list[PlanDocument], plan: PlanDocuments, specs: Mapping[str, Spec], findings: FindingCollector
) -> None:
    by_kind = {page.kind: page for page in pages}
    try:
        if page := by_kind.get("proposal"):
            check_named_specs(read_proposal(page.document, page.front), plan, findings)
    except InvalidFrontmatter as error:
        findings.bad_frontmatter(error)
    if page := by_kind.get("tasks"):
        found = read_tasks(page.document, page.front)
        check_tasks(found, findings)
        unread = {spec_id(name) for name in plan.texts if name.startswith("specs/")} - set(specs)
        check_coverage(found, specs, plan.main, unread, findings)
