"""The repository and how agentd is set up in it.

layout      where everything is: the project in each worktree, and its local state
git         the git layout read from files; everything else through the git command
config      agentd/config.toml, its layers and the schema of its keys
trust       commands that a repository wants to run, trusted by hash
detection   the checks a project seems to have
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.project import git
    from agentd.project.config.layers import user_config_file, user_config_label
    from agentd.project.config.loader import load_config
    from agentd.project.config.settings import (
        BudgetSettings,
        CheckSettings,
        Config,
        ConfigValue,
        ValidationSettings,
        WorkflowSettings,
    )
    from agentd.project.config.template import assign_template_roles, render_template
    from agentd.project.detection.check_proposals import propose_checks
    from agentd.project.git import GitFailed
    from agentd.project.layout import CONFIG_PATH, Project, current_directory, find_project
    from agentd.project.trust.items import TrustKind, agent_item, check_item, prompt_item, prompt_overrides, trust_items
    from agentd.project.trust.store import (
        TrustState,
        TrustStatus,
        ensure_trusted,
        grant_trust,
        is_trusted,
        revoke_trust,
        trust_refusal,
        trust_states,
        untrusted_items,
    )
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)
