"""`punie servers`: MCP servers, those of the project and your own."""

from __future__ import annotations

import argparse

from punie.commands.flags import Commands, Run, new_action, new_actions, runs


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    actions = new_actions(commands, "servers", "MCP servers: which there are, and their state")

    def new(name: str, help_text: str, run: Run, *, anywhere: bool = False) -> argparse.ArgumentParser:
        return new_action(actions, name, help_text, run, as_json=True, cwd=not anywhere)

    def asking(name: str, help_text: str) -> argparse.ArgumentParser:
        return new(name, help_text, runs("servers.run:run_servers", name))

    def changing(name: str, help_text: str) -> argparse.ArgumentParser:
        return new(name, help_text, runs("servers.change:run_change", name))

    asking("list", "the configured servers, without starting any")
    asking("check", "connect to one, or to all, and list its tools").add_argument("name", metavar="NAME", nargs="?")
    asking("approve", "show exactly what a project's server runs, and let it").add_argument("name", metavar="NAME")
    changing("revoke", "take the approval of a project's server back").add_argument("name", metavar="NAME")
    asking("refresh", "ask one, or all, anew: what is different").add_argument("name", metavar="NAME", nargs="?")
    showing = "add a described server to your own: show what it would run, and ask"
    adding = new("add", showing, runs("servers.add:run_add"), anywhere=True)
    adding.add_argument("source", metavar="SOURCE", help="a server.json, its address, or a name in the registry")
    adding.add_argument("--name", metavar="NAME", help="what to call it (default: the last part of its name)")
    adding.add_argument("--yes", action="store_true", help="do not ask")
    search = new("search", "what the configured registry knows", runs("servers.search:run_search"), anywhere=True)
    search.add_argument("query", metavar="QUERY", help="a part of the name")
    search.add_argument("--limit", metavar="N", type=int, default=20, help="how many servers (default: 20)")
    changing("enable", "use one of your own servers again").add_argument("name", metavar="NAME")
    changing("disable", "leave one of your own servers out").add_argument("name", metavar="NAME")
    changing("remove", "take one of your own servers out of your file").add_argument("name", metavar="NAME")
