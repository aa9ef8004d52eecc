"""`punie state`: the state of this user in one file, and a state from it."""

from __future__ import annotations

from punie.commands.flags import Commands, add_json, new_action, new_actions


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    actions = new_actions(commands, "state", "sessions, books and histories of files: back up, restore")
    for name, help_text, yes in (
        (
            "backup",
            "write all of it to one file, also while servers run",
            "replace a file that is there, without asking",
        ),
        ("restore", "put the state of such a file in the place of this one", "replace the state without asking"),
    ):
        action = new_action(actions, name, help_text, f"state.run:run_{name}")
        action.add_argument("given", metavar="FILE", help="the file")
        action.add_argument("--yes", action="store_true", help=yes)
        add_json(action)
