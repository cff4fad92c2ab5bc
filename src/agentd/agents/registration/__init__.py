"""agentd's MCP server in a person's own sessions: an entry in each CLI's project file, and its way back."""

from agentd.agents.registration.registration import RegistrationResult, register_server, unregister_server

__all__ = ["RegistrationResult", "register_server", "unregister_server"]
