"""`punie servers`: MCP servers, those of the project and your own."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from punie.commands.flags import new_action, new_actions

if TYPE_CHECKING:
    from punie.commands.flags import Commands


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    actions = new_actions(commands, "servers", "MCP servers: which there are, and their state", _run)

    def new(name: str, help_text: str, *, anywhere: bool = False) -> argparse.ArgumentParser:
        return new_action(actions, name, help_text, as_json=True, cwd=not anywhere)

    new("list", "the configured servers, without starting any")
    new("check", "connect to one, or to all, and list its tools").add_argument("name", metavar="NAME", nargs="?")
    new("approve", "show exactly what a project's server runs, and let it").add_argument("name", metavar="NAME")
    new("revoke", "take the approval of a project's server back").add_argument("name", metavar="NAME")
    new("refresh", "ask one, or all, anew: what is different").add_argument("name", metavar="NAME", nargs="?")
    adding = new("add", "add a described server to your own: show what it would run, and ask", anywhere=True)
    adding.add_argument("source", metavar="SOURCE", help="a server.json, its address, or a name in the registry")
    adding.add_argument("--name", metavar="NAME", help="what to call it (default: the last part of its name)")
    adding.add_argument("--yes", action="store_true", help="do not ask")
    search = new("search", "what the configured registry knows", anywhere=True)
    search.add_argument("query", metavar="QUERY", help="a part of the name")
    search.add_argument("--limit", metavar="N", type=int, default=20, help="how many servers (default: 20)")
    new("enable", "use one of your own servers again").add_argument("name", metavar="NAME")
    new("disable", "leave one of your own servers out").add_argument("name", metavar="NAME")
    new("remove", "take one of your own servers out of your file").add_argument("name", metavar="NAME")


def _run(arguments: argparse.Namespace) -> int:
    if arguments.action == "add":
        from punie.commands.servers.add import run_add

        return run_add(source=arguments.source, name=arguments.name, yes=arguments.yes, as_json=arguments.json)
    if arguments.action == "search":
        from punie.commands.servers.search import run_search

        return run_search(query=arguments.query, limit=arguments.limit, as_json=arguments.json)
    name = getattr(arguments, "name", None)
    if name is not None and arguments.action in {"remove", "enable", "disable", "revoke"}:
        from punie.commands.servers.change import run_change

        return run_change(action=arguments.action, name=name, as_json=arguments.json, cwd=arguments.cwd)
    from punie.commands.servers.run import run_servers

    return run_servers(action=arguments.action, name=name, as_json=arguments.json, cwd=arguments.cwd)
