"""The tools that a model is offered: discovery, the registry, disclosure and search."""
