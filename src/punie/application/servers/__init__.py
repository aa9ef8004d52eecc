"""What a session, or a command, knows of its MCP servers: which there are, what they offer, and since when."""
