"""Validation rules for the documents of a change. Pure; a problem is a finding, never an error.

rule                        rules, their input and their findings
document_rules, plan_rules  the rules, each declared beside its function
validator                   all rules applied to one plan
fixes                       mechanical faults that agentd fixes itself
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.validation.fixes import fix_document
    from agentd.validation.plan_rules import CODE_RULES, path_problem
    from agentd.validation.rule import PlanDocuments, RuleFinding, count_by_severity, is_valid
    from agentd.validation.validator import RULES, validate
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
