"""Public MCP servers that the tests run Punie against."""
