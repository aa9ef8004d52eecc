"""What a model is offered: discovery, the registry of tools, disclosure and search."""
