"""agentd's MCP server in a person's own sessions: an entry in each CLI's project file, and its way back."""
