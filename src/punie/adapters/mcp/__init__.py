"""Servers of tools that speak MCP: started, reached, kept apart. The library `mcp` is used here only, loaded late."""
