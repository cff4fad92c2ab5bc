"""Validation: rules over the documents of a change. Pure; what is wrong is a finding, never an error."""

from agentd.rules.finding import Finding, Settings, counts, is_valid
from agentd.rules.plan import Plan
from agentd.rules.validate import validate

__all__ = ["Finding", "Plan", "Settings", "counts", "is_valid", "validate"]
