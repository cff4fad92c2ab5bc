"""Apply all rules to one plan; also the list of rules."""

from agentd.documents import InvalidFrontmatter, read_proposal, read_tasks
from agentd.validation import document_rules, plan_rules
from agentd.validation.document_rules import open_document, report_frontmatter
from agentd.validation.rule import (
    DOCUMENT_CHECKS,
    PLAN_CHECKS,
    PlanDocuments,
    PlanValidation,
    Rule,
    RuleFinding,
    RuleSettings,
    spec_id,
)

_DECLARED = {
    rule.name: rule
    for module in (document_rules, plan_rules)
    for rule in vars(module).values()
    if isinstance(rule, Rule)
}
RULES = tuple(rule for rule in _DECLARED.values() if rule.is_configurable)


def validate(plan: PlanDocuments, settings: RuleSettings) -> tuple[RuleFinding, ...]:
    """Return the findings, sorted by file and line."""
    run = PlanValidation(plan, settings)
    for name, data in plan.texts.items():
        page = open_document(name, data, run)
        if page is None:
            continue
        if page.spec and not page.document.closing:
            run.specs[spec_id(name)] = page.spec
        elif page.kind == "proposal":
            try:
                run.proposal = read_proposal(page.document, page.front)
            except InvalidFrontmatter as error:
                report_frontmatter(error, run)
        elif page.kind == "tasks":
            run.tasks = read_tasks(page.document, page.front)
        for document_check in DOCUMENT_CHECKS:
            document_check(page, run)
    for plan_check in PLAN_CHECKS:
        plan_check(run)
    return tuple(sorted(run.found))
