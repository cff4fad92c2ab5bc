"""All rules over one change."""

from collections.abc import Mapping

from agentd.documents import InvalidFrontmatter, Spec, read_proposal, read_spec, read_tasks
from agentd.validation.cross_document_rules import check_coverage, check_missing, check_named_specs
from agentd.validation.document_rules import check_document
from agentd.validation.plan_documents import PlanDocument, PlanDocuments, open_document, spec_id
from agentd.validation.rule_findings import FindingCollector, RuleFinding, RuleSettings
from agentd.validation.spec_rules import check_spec, only_removes
from agentd.validation.task_rules import check_tasks

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
