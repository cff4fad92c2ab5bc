"""Validation rules over the documents of a change. Pure; a problem is a finding, never an error.

plan_documents                                       the documents as rules see them
document_rules, spec_rules, task_rules, cross_document_rules   the rules
rule_findings                                        findings, their severity, and the settings rules need
fixes                                                mechanical faults that agentd fixes itself
validator                                            all rules over one change
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.validation.fixes import fix_document
    from agentd.validation.rule_input import PlanDocuments, RuleFinding, count_by_severity, is_valid
    from agentd.validation.spec_rules import path_problem
    from agentd.validation.validator import validate
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
