"""`punie ide check`: an agent that checks the IDE which starts it."""

from __future__ import annotations

from punie.commands.flags import Commands, new_action, new_actions


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    actions = new_actions(commands, "ide", "check an IDE from the side of its agents")
    check = new_action(actions, "check", "an agent for the IDE's list that checks the IDE", "ide.run:run_check")
    check.add_argument("--report", metavar="FILE", help="write the report of each prompt there, as JSON")
