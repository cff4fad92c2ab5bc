"""How agentd works in a project: `agentd/config.toml` and what goes before it.

`load` reads flag > environment > user file > project file > default; `render_template` is what `init` writes.
Tables merge key by key, lists are replaced whole, and an agent whose kind is changed starts anew.
"""

from agentd.project.config.loader import load_config
from agentd.project.config.settings import (
    AgentSettings,
    BudgetSettings,
    CheckSettings,
    Config,
    ConfigValue,
    GitSettings,
    LimitSettings,
    ModelSettings,
    PriceSettings,
    ValidationSettings,
    WorkflowSettings,
)
from agentd.project.config.template import assign_template_roles, render_template

__all__ = [
    "AgentSettings",
    "BudgetSettings",
    "CheckSettings",
    "Config",
    "ConfigValue",
    "GitSettings",
    "LimitSettings",
    "ModelSettings",
    "PriceSettings",
    "ValidationSettings",
    "WorkflowSettings",
    "assign_template_roles",
    "load_config",
    "render_template",
]
