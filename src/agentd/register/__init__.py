"""agentd's MCP server in a person's own sessions: an entry in each CLI's project file, and its way back."""

from agentd.register.project_files import Answer, add, take_back

__all__ = ["Answer", "add", "take_back"]
