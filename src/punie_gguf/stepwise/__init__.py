"""A model that is held to a grammar: each of its answers is one step, a call of an offered tool or a final answer."""
