"""MCP servers as values: definitions, registry records, inputs and warnings."""
