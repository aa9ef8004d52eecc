"""An engine without a model: slash commands become tool calls (INTERFACES.md section 2)."""
