"""The MCP face: maps tools to the protocol, over stdio and HTTP. No decisions."""
