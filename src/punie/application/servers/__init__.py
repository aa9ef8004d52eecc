"""The MCP servers of a session or a command: their status, their tools, and the age of that knowledge."""
