"""`punie servers`: MCP servers."""
