"""Validation: rules over the documents of a change. Pure; what is wrong is a finding, never an error."""

from agentd.validation.plan_documents import PlanDocuments
from agentd.validation.rule_findings import RuleFinding, RuleSettings, count_by_severity, is_valid
from agentd.validation.validator import validate

__all__ = ["PlanDocuments", "RuleFinding", "RuleSettings", "count_by_severity", "is_valid", "validate"]
