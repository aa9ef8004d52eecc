"""An engine without a model: slash commands become tool calls."""
