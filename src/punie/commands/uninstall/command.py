"""`punie uninstall`: what Punie wrote, shown and removed."""

from __future__ import annotations

from punie.commands.flags import Commands, add_json, new_command


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    words = "remove what Punie wrote on this machine: entries in IDEs, keys, sessions, settings"
    command = new_command(commands, "uninstall", words, "uninstall.run:run_uninstall")
    command.add_argument("--dry-run", action="store_true", help="show what would be removed, and remove nothing")
    command.add_argument(
        "--keep-settings", action="store_true", help="leave your settings, skills, hooks and pipelines"
    )
    command.add_argument("--yes", action="store_true", help="remove it without asking")
    add_json(command)
