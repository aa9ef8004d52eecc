"""`punie chat`: a conversation at a terminal."""

from __future__ import annotations

from punie.commands.flags import Commands, add_cwd, add_going_on, add_mode, add_model, add_rules, new_command


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    chat = new_command(commands, "chat", "a conversation at this terminal, without an IDE", "chat.run:run_chat")
    add_model(chat)
    add_mode(chat)
    add_rules(chat)
    add_cwd(chat)
    add_going_on(chat)
