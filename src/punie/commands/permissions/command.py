"""`punie permissions`: what may run, and why."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from punie.commands.flags import add_mode, add_rules, new_action, new_actions, permission_flags

if TYPE_CHECKING:
    from punie.commands.flags import Commands


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    actions = new_actions(commands, "permissions", "what may run, and why", _run)
    new_action(actions, "list", "what was granted for good", as_json=True)
    revoke = new_action(actions, "revoke", "take a grant back", as_json=True)
    revoke.add_argument("grant_id", metavar="ID", help="its id, or how that begins")
    audit = new_action(actions, "audit", "what was decided, the last of it", as_json=True)
    audit.add_argument("--verify", action="store_true", help="look through all of it for changes made afterwards")
    audit.add_argument("--limit", metavar="N", type=int, default=50, help="how many decisions (default: 50)")
    check = new_action(actions, "check", "read one JSON request a line, answer one decision a line", cwd=True)
    check.add_argument("--json", action="store_true", help="answer JSON, for programs")
    explain = new_action(
        actions, "explain", "show how the decision on a call comes about; alone: what is in force", cwd=True
    )
    explain.add_argument("what", metavar="LINE|TOOL", nargs="?", help="a command line, or with JSON a tool's name")
    explain.add_argument("arguments", metavar="JSON", nargs="?", help="the arguments of the tool")
    for action in (check, explain):
        add_mode(action)
        add_rules(action)
    trust = new_action(
        actions, "trust", "let the project's own settings loosen, for their content as it is now", cwd=True
    )
    trust.add_argument("--revoke", action="store_true", help="trust them no longer")
    trust.add_argument("--yes", action="store_true", help="do not ask")


def _run(arguments: argparse.Namespace) -> int:
    if arguments.action == "trust":
        from punie.commands.permissions.trust import run_trust

        return run_trust(cwd=arguments.cwd, revoke=arguments.revoke, yes=arguments.yes)
    if arguments.action in {"list", "revoke", "audit"}:
        from punie.commands.permissions.kept import run_grants

        given = {name: getattr(arguments, name) for name in ("grant_id", "verify", "limit") if hasattr(arguments, name)}
        return run_grants(action=arguments.action, as_json=arguments.json, **given)
    from punie.commands.permissions.run import run_check, run_explain

    flags = permission_flags(arguments)
    if arguments.action == "check":
        return run_check(as_json=arguments.json, cwd=arguments.cwd, flags=flags)
    words = tuple(word for word in (arguments.what, arguments.arguments) if word is not None)
    return run_explain(words=words, cwd=arguments.cwd, flags=flags)
