"""What a person's own Claude Code, Gemini CLI and Codex offer as plan, impl and archive: files of the project."""

from agentd.agents.skills.skill_files import KEPT, OURS, render_skill, wanted_targets, write_skills
from agentd.agents.skills.skill_targets import SKILL_TARGETS, SKILL_WORKFLOWS, SkillTarget, SkillWorkflow

__all__ = [
    "KEPT",
    "OURS",
    "SKILL_TARGETS",
    "SKILL_WORKFLOWS",
    "SkillTarget",
    "SkillWorkflow",
    "render_skill",
    "wanted_targets",
    "write_skills",
]
