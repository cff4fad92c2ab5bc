"""What a person's own Claude Code, Gemini CLI and Codex offer as plan, impl and archive: files of the project."""

from agentd.skills.clis import CLIS, WORKFLOWS, Cli, Workflow
from agentd.skills.project_files import KEPT, OURS, lay_down, wanted
from agentd.skills.rendering import render

__all__ = ["CLIS", "KEPT", "OURS", "WORKFLOWS", "Cli", "Workflow", "lay_down", "render", "wanted"]
