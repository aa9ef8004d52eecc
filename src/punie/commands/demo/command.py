"""`punie demo`: the main job, played."""

from __future__ import annotations

from punie.commands.flags import Commands, add_model, new_command


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    help_text = "play the whole thing on this machine: a small IDE, its tools, a prompt"
    demo = new_command(commands, "demo", help_text, "demo.run:demo")
    add_model(demo)
    demo.add_argument("--project", metavar="DIR", help="the project to work on (default: this repository)")
    demo.add_argument("--interactive", action="store_true", help="answer the questions yourself")
    demo.add_argument("--in-place", action="store_true", help="work on the project itself, not on a copy")
