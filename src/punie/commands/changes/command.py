"""`punie changes`: what the turns of a session changed, file by file."""

from __future__ import annotations

from punie.commands.flags import Commands, add_cwd, add_json, new_command


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    help_text = "the files that a session's turns changed, by whom, and how"
    changes = new_command(commands, "changes", help_text, "changes.run:run_changes")
    which = "its id, how that begins, or `last` (default: the last session of this directory)"
    changes.add_argument("given", metavar="SESSION", nargs="?", help=which)
    changes.add_argument("--turn", metavar="N", type=int, help="that turn alone; the first one is 1")
    changes.add_argument("--patch", action="store_true", help="print one patch of it all, for `git apply`")
    add_json(changes)
    add_cwd(changes)
