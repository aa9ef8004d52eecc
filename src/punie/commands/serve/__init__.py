"""`punie serve`: the agent for many clients over WebSocket."""
