"""`punie servers`: MCP servers, those of the project and your own."""

from __future__ import annotations

import argparse

from punie.commands.flags import Commands, new_action, new_actions, takes_rest


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    actions = new_actions(commands, "servers", "MCP servers: which there are, and their state")

    def asking(name: str, help_text: str) -> argparse.ArgumentParser:
        return new_action(actions, name, help_text, "servers.run:run_servers", name, as_json=True, cwd=True)

    def changing(name: str, help_text: str) -> argparse.ArgumentParser:
        return new_action(actions, name, help_text, "servers.change:run_change", name, as_json=True, cwd=True)

    def approving(name: str, help_text: str) -> argparse.ArgumentParser:
        action = new_action(actions, name, help_text, "servers.approve:run_approval", name, as_json=True, cwd=True)
        action.add_argument("name", metavar="NAME")
        return action

    asking("list", "the configured servers, without starting any")
    asking("check", "connect to one, or to all, and list its tools").add_argument("name", metavar="NAME", nargs="?")
    approving("show", "show exactly what one would run or reach")
    approving("approve", "show a project's server, and ask").add_argument(
        "--yes", action="store_true", help="do not ask"
    )
    approving("revoke", "take the approval of a project's server back")
    asking("refresh", "ask one, or all, anew: what is different").add_argument("name", metavar="NAME", nargs="?")
    showing = "add a server to your own: NAME -- COMMAND..., NAME --url URL, or a described one, shown first"
    adding = new_action(actions, "add", showing, "servers.add:run_add", as_json=True)
    adding.add_argument(
        "source", metavar="NAME|SOURCE", help="its name; or a server.json, its address, or a name in the registry"
    )
    adding.add_argument("--url", metavar="URL", help="where the server NAME is reached")
    adding.set_defaults(typed=None)
    takes_rest(adding, "typed")
    adding.add_argument("--name", metavar="NAME", help="what to call it (default: the last part of its name)")
    adding.add_argument("--yes", action="store_true", help="do not ask")
    searching = "what the configured registry knows"
    search = new_action(actions, "search", searching, "servers.add:run_search", as_json=True)
    search.add_argument("query", metavar="QUERY", help="a part of the name")
    search.add_argument("--limit", metavar="N", type=int, default=20, help="how many servers (default: 20)")
    changing("enable", "use one of your own servers again").add_argument("name", metavar="NAME")
    changing("disable", "leave one of your own servers out").add_argument("name", metavar="NAME")
    changing("remove", "take one of your own servers out of your file").add_argument("name", metavar="NAME")
