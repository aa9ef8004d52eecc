"""Programs that speak MCP over standard input and output, well or badly; standard library only, run as programs."""
