"""Register agentd's MCP server for a person's own sessions, in each CLI's project file, and undo it."""
