"""The public conformance suite of MCP, run against our adapter (`make conformance`; issue 5, shows)."""
