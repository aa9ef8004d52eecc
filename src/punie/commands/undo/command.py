"""`punie undo`: takes a session's files back to before a turn."""

from __future__ import annotations

from punie.commands.flags import Commands, add_cwd, add_json, new_command


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    help_text = "take back what the turns of a session changed in files"
    undo = new_command(commands, "undo", help_text, "undo.run:run_undo")
    which = "its id, how that begins, or `last` (default: the last session of this directory)"
    undo.add_argument("given", metavar="SESSION", nargs="?", help=which)
    undo.add_argument("--turn", metavar="N", type=int, help="back to before that turn (default: the last one)")
    again = "take that file back although somebody else changed it since; may be repeated"
    undo.add_argument("--path", metavar="P", dest="paths", action="append", default=[], help=again)
    undo.add_argument("--yes", action="store_true", help="do it without a question")
    add_json(undo)
    add_cwd(undo)
