"""`punie turns`: the turns that survive their server."""
