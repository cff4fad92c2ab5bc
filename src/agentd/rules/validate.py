"""All rules over one change."""

from collections.abc import Mapping

from agentd.documents import proposal, spec, tasks
from agentd.documents.frontmatter import BadFrontmatter
from agentd.documents.spec import Spec
from agentd.rules.across import check_coverage, check_missing, check_named_specs
from agentd.rules.finding import Finding, Findings, Settings
from agentd.rules.pages import check_page
from agentd.rules.plan import Page, Plan, open_page, spec_id
from agentd.rules.specs import check_spec, only_takes_away
from agentd.rules.tasks import check_tasks

_NEEDLESS = frozenset({"Requirements", "Acceptance Criteria"})


def validate(plan: Plan, settings: Settings) -> tuple[Finding, ...]:
    """Sorted by file and line."""
    findings = Findings(settings)
    check_missing(plan, findings)
    pages = [page for name, data in plan.texts.items() if (page := open_page(name, data, findings))]
    specs: dict[str, Spec] = {}
    for page in pages:
        if page.kind == "spec":
            _check_spec_page(page, plan, settings, findings, specs)
        else:
            check_page(page, plan, settings, findings)
    _check_whole(pages, plan, specs, findings)
    return tuple(sorted(findings.found))


def _check_spec_page(page: Page, plan: Plan, settings: Settings, findings: Findings, specs: dict[str, Spec]) -> None:
    try:
        found = spec.read(page.document, page.front, settings.requirement_pattern)
    except BadFrontmatter as error:
        findings.bad_frontmatter(error)
        return
    if not page.document.closing:  # what is hidden may be there
        specs[page.spec_id] = found
    check_page(page, plan, settings, findings, _NEEDLESS if only_takes_away(found) else frozenset())
    check_spec(page, found, plan.main.get(page.spec_id), settings, findings)


def _check_whole(pages: list[Page], plan: Plan, specs: Mapping[str, Spec], findings: Findings) -> None:
    by_kind = {page.kind: page for page in pages}
    try:
        if page := by_kind.get("proposal"):
            check_named_specs(proposal.read(page.document, page.front), plan, findings)
    except BadFrontmatter as error:
        findings.bad_frontmatter(error)
    if page := by_kind.get("tasks"):
        found = tasks.read(page.document, page.front)
        check_tasks(found, findings)
        unread = {spec_id(name) for name in plan.texts if name.startswith("specs/")} - set(specs)
        check_coverage(found, specs, plan.main, unread, findings)
