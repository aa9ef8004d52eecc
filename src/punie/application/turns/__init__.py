"""A live session and its turns: prompts, slash commands, instructions, mode and model."""
