"""How agentd works in a project: `agentd/config.toml` and what goes before it.

`load` reads flag > environment > user file > project file > default; `render_template` is what `init` writes.
Tables merge key by key, lists are replaced whole, and an agent whose kind is changed starts anew.
"""

from agentd.config.loading import load
from agentd.config.model import (
    Agent,
    Budget,
    Check,
    Config,
    GitSettings,
    Limits,
    Model,
    Price,
    Validation,
    Value,
    WorkflowSettings,
)
from agentd.config.template import render_template, seated

__all__ = [
    "Agent",
    "Budget",
    "Check",
    "Config",
    "GitSettings",
    "Limits",
    "Model",
    "Price",
    "Validation",
    "Value",
    "WorkflowSettings",
    "load",
    "render_template",
    "seated",
]
