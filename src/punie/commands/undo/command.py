"""`punie undo`: takes a session back to before a turn."""

from __future__ import annotations

from punie.commands.flags import Commands, add_cwd, add_json, new_command


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    help_text = "take a session back to before a turn: its files, its conversation, or both"
    undo = new_command(commands, "undo", help_text, "undo.run:run_undo")
    which = "its id, how that begins, or `last` (default: the last session of this directory)"
    undo.add_argument("given", metavar="SESSION", nargs="?", help=which)
    undo.add_argument("--turn", metavar="N", type=int, help="back to before that turn (default: the last one)")
    part = undo.add_mutually_exclusive_group()
    for name in ("files", "conversation"):
        only = f"the {name} alone (default: files and conversation)"
        part.add_argument(f"--{name}", dest="part", action="store_const", const=name, default="both", help=only)
    again = "take that file back although somebody else changed it since; may be repeated"
    undo.add_argument("--path", metavar="P", dest="paths", action="append", default=[], help=again)
    undo.add_argument("--yes", action="store_true", help="do it without a question")
    add_json(undo)
    add_cwd(undo)
