"""The command line: arguments in, exit code out. Nothing heavy is imported before a command was chosen."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from punie import __version__
from punie.domain.modes import Mode

if TYPE_CHECKING:
    # argparse gives the type of add_subparsers() no public name.
    Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; gives its exit code. Wrong usage leaves with exit code 2, as argparse does."""
    arguments = _parser().parse_args(argv)
    if arguments.command == "acp":
        from punie.bootstrap.acp_mode import run_acp

        return run_acp(model=arguments.model, mode=arguments.mode, log_file=arguments.log_file)
    if arguments.command == "demo":
        return _demo(arguments)
    if arguments.command == "usage":
        return _usage(arguments)
    if arguments.command == "tools":
        return _tools(arguments)
    if arguments.command == "permissions":
        return _permissions(arguments)
    if arguments.command == "sessions":
        return _sessions(arguments)
    if arguments.command == "servers":
        return _servers(arguments)
    from punie.bootstrap.ask_mode import run_ask

    return run_ask(
        model=arguments.model,
        permissions=_permission_flags(arguments),
        as_json=arguments.json,
        cwd=arguments.cwd,
        prompt=arguments.prompt,
        session=arguments.session,
    )


def _permission_flags(arguments: argparse.Namespace) -> dict[str, str | None]:
    """The flags of permissions by the keys of the settings; those that may be repeated as a JSON list."""
    repeated = {f"permissions.{name}": getattr(arguments, name, []) for name in ("allow", "deny")}
    return {
        "permissions.mode": arguments.mode,
        **{key: json.dumps(texts) for key, texts in repeated.items() if texts},
    }


def _permissions(arguments: argparse.Namespace) -> int:
    if arguments.action == "trust":
        from punie.bootstrap.trust_mode import run_trust

        return run_trust(cwd=arguments.cwd, revoke=arguments.revoke, yes=arguments.yes)
    if arguments.action in {"list", "revoke", "audit"}:
        from punie.bootstrap.grants_mode import run_grants

        given = {name: getattr(arguments, name) for name in ("grant_id", "verify", "limit") if hasattr(arguments, name)}
        return run_grants(action=arguments.action, as_json=arguments.json, **given)
    from punie.bootstrap.permissions_mode import run_check, run_explain

    flags = _permission_flags(arguments)
    if arguments.action == "check":
        return run_check(as_json=arguments.json, cwd=arguments.cwd, flags=flags)
    words = tuple(word for word in (arguments.what, arguments.arguments) if word is not None)
    return run_explain(words=words, cwd=arguments.cwd, flags=flags)


def _demo(arguments: argparse.Namespace) -> int:
    import anyio

    from punie.bootstrap.demo.run import run_demo

    run = partial(
        run_demo,
        project=arguments.project,
        model=arguments.model,
        interactive=arguments.interactive,
        in_place=arguments.in_place,
    )
    return anyio.run(run)


def _tools(arguments: argparse.Namespace) -> int:
    from punie.bootstrap.tools_mode import run_tools

    return run_tools(
        action=arguments.action,
        words=tuple(getattr(arguments, word) for word in ("name", "query", "arguments") if hasattr(arguments, word)),
        as_json=arguments.json,
        cwd=arguments.cwd,
        model=arguments.model,
        every=getattr(arguments, "all", False),
    )


def _servers(arguments: argparse.Namespace) -> int:
    if arguments.action == "add":
        from punie.bootstrap.servers_add import run_add

        return run_add(source=arguments.source, name=arguments.name, yes=arguments.yes, as_json=arguments.json)
    if arguments.action == "search":
        from punie.bootstrap.servers_search import run_search

        return run_search(query=arguments.query, limit=arguments.limit, as_json=arguments.json)
    name = getattr(arguments, "name", None)
    if name is not None and arguments.action in {"remove", "enable", "disable", "revoke"}:
        from punie.bootstrap.servers_change import run_change

        return run_change(action=arguments.action, name=name, as_json=arguments.json, cwd=arguments.cwd)
    from punie.bootstrap.servers_mode import run_servers

    return run_servers(action=arguments.action, name=name, as_json=arguments.json, cwd=arguments.cwd)


def _usage(arguments: argparse.Namespace) -> int:
    from punie.bootstrap.usage_mode import run_usage

    return run_usage(
        since=arguments.since,
        session=arguments.session,
        by=arguments.by,
        form=arguments.form,
        cwd=arguments.cwd,
        disable=arguments.disable,
    )


def _sessions(arguments: argparse.Namespace) -> int:
    from punie.bootstrap.sessions_mode import run_sessions

    return run_sessions(
        action=arguments.action,
        as_json=arguments.json,
        given=getattr(arguments, "given", ""),
        cwd=getattr(arguments, "cwd", None),
        everything=getattr(arguments, "all", False),
        new_id=getattr(arguments, "new_id", False),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="punie", allow_abbrev=False, description="A coding agent whose tool runtime is your IDE."
    )
    parser.add_argument("--version", action="version", version=f"punie {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_acp(commands)
    _add_ask(commands)
    _add_demo(commands)
    _add_usage(commands)
    _add_tools(commands)
    _add_servers(commands)
    _add_permissions(commands)
    _add_sessions(commands)
    return parser


def _add_model(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--model", metavar="M", help="provider:name, script:FILE.json, or direct (no model); default: the settings'"
    )


def _add_mode(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--mode",
        metavar="MODE",
        choices=[mode.value for mode in Mode],
        help="read-only, ask, accept-edits or auto; default: the settings', else ask",
    )


def _add_rules(command: argparse.ArgumentParser) -> None:
    for name in ("allow", "deny"):
        command.add_argument(
            f"--{name}",
            metavar="RULE",
            action="append",
            default=[],
            help=f"{name} TOOL, TOOL:ARGV-PREFIX or TOOL@PATH-GLOB; may be repeated",
        )


def _add_acp(commands: Commands) -> None:
    acp = commands.add_parser("acp", allow_abbrev=False, help="serve an IDE over ACP on stdin and stdout")
    _add_model(acp)
    _add_mode(acp)
    acp.add_argument("--log-file", metavar="F", help="write the log there, rotated, instead of to stderr")


def _add_ask(commands: Commands) -> None:
    ask = commands.add_parser("ask", allow_abbrev=False, help="run one prompt on this machine, without an IDE")
    _add_model(ask)
    _add_mode(ask)
    _add_rules(ask)
    ask.add_argument("--json", action="store_true", help="print events as JSON, one a line")
    ask.add_argument("--cwd", metavar="DIR", default=".", help="the project's directory (default: this one)")
    ask.add_argument("--session", metavar="ID", help="go on with that session (see: punie sessions list)")
    ask.add_argument("prompt", metavar="PROMPT")


def _add_demo(commands: Commands) -> None:
    demo = commands.add_parser(
        "demo", allow_abbrev=False, help="play the whole thing on this machine: a small IDE, its tools, a prompt"
    )
    _add_model(demo)
    demo.add_argument("--project", metavar="DIR", help="the project to work on (default: this repository)")
    demo.add_argument("--interactive", action="store_true", help="answer the questions yourself")
    demo.add_argument("--in-place", action="store_true", help="work on the project itself, not on a copy")


def _add_usage(commands: Commands) -> None:
    usage = commands.add_parser("usage", allow_abbrev=False, help="what was called, how it went and what it cost")
    usage.add_argument("--since", metavar="WHEN", help="7d, 12h or a date such as 2026-11-01 (default: all there is)")
    usage.add_argument("--session", metavar="ID", help="only that session")
    usage.add_argument(
        "--by", choices=("tool", "session", "model", "day"), default="tool", help="which table (default: tool)"
    )
    form = usage.add_mutually_exclusive_group()
    form.add_argument("--json", dest="form", action="store_const", const="json", help="all tables as one JSON object")
    form.add_argument("--csv", dest="form", action="store_const", const="csv", help="the table for a spreadsheet")
    usage.add_argument("--cwd", metavar="DIR", default=".", help="the project whose tools are compared (default: this)")
    usage.add_argument(
        "--disable", metavar="NAME", nargs="+", default=(), help="leave these tools out from the next session on"
    )


def _add_tools(commands: Commands) -> None:
    tools = commands.add_parser("tools", allow_abbrev=False, help="list, show, search, call tools; what they cost")
    actions = tools.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, help_text: str) -> argparse.ArgumentParser:
        action = actions.add_parser(name, allow_abbrev=False, help=help_text)
        action.add_argument("--json", action="store_true", help="print JSON, for programs")
        action.add_argument("--cwd", metavar="DIR", default=".", help="the project's directory (default: this one)")
        action.add_argument("--model", metavar="M", help="as a session with that model (default: direct)")
        return action

    add("list", "the tools that a session here would have").add_argument(
        "--all", action="store_true", help="also those that are left out, with reasons"
    )
    add("show", "everything about one tool").add_argument("name", metavar="NAME")
    add("search", "the tools whose name or description has these words").add_argument("query", metavar="QUERY")
    call = add("call", "run one call, asking as in a session")
    call.add_argument("name", metavar="NAME")
    call.add_argument("arguments", metavar="JSON", nargs="?", default="{}", help="the arguments (default: {})")
    add("tokens", "about how many tokens the tools cost at each model request")


def _add_servers(commands: Commands) -> None:
    servers = commands.add_parser("servers", allow_abbrev=False, help="MCP servers: which there are, and their state")
    actions = servers.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, help_text: str, *, anywhere: bool = False) -> argparse.ArgumentParser:
        action = actions.add_parser(name, allow_abbrev=False, help=help_text)
        action.add_argument("--json", action="store_true", help="print JSON, for programs")
        if not anywhere:
            action.add_argument("--cwd", metavar="DIR", default=".", help="the project's directory (default: this one)")
        return action

    add("list", "the configured servers, without starting any")
    add("check", "connect to one, or to all, and list its tools").add_argument("name", metavar="NAME", nargs="?")
    add("approve", "show exactly what a project's server runs, and let it").add_argument("name", metavar="NAME")
    add("revoke", "take the approval of a project's server back").add_argument("name", metavar="NAME")
    add("refresh", "ask one, or all, anew: what is different").add_argument("name", metavar="NAME", nargs="?")
    new = add("add", "add a described server to your own: show what it would run, and ask", anywhere=True)
    new.add_argument("source", metavar="SOURCE", help="a server.json, its address, or a name in the registry")
    new.add_argument("--name", metavar="NAME", help="what to call it (default: the last part of its name)")
    new.add_argument("--yes", action="store_true", help="do not ask")
    search = add("search", "what the configured registry knows", anywhere=True)
    search.add_argument("query", metavar="QUERY", help="a part of the name")
    search.add_argument("--limit", metavar="N", type=int, default=20, help="how many servers (default: 20)")
    add("enable", "use one of your own servers again").add_argument("name", metavar="NAME")
    add("disable", "leave one of your own servers out").add_argument("name", metavar="NAME")
    add("remove", "take one of your own servers out of your file").add_argument("name", metavar="NAME")


def _add_sessions(commands: Commands) -> None:
    sessions = commands.add_parser("sessions", allow_abbrev=False, help="stored sessions: list, show, export, delete")
    actions = sessions.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, help_text: str) -> argparse.ArgumentParser:
        action = actions.add_parser(name, allow_abbrev=False, help=help_text)
        action.add_argument("--json", action="store_true", help="print JSON, for programs")
        return action

    listing = add("list", "the sessions that are stored, the latest first")
    listing.add_argument("--cwd", metavar="DIR", help="only those of that directory")
    listing.add_argument("--all", action="store_true", help="all of them, not the latest 50 (JSON has them all anyway)")
    for name, help_text in (
        ("show", "one conversation, as a person reads it"),
        ("export", "one session as JSON lines, for `punie sessions import`"),
        ("delete", "forget one session"),
    ):
        add(name, help_text).add_argument("given", metavar="ID", help="its id, or how that begins")
    taking = add("import", "store a session that was exported")
    taking.add_argument("given", metavar="FILE", help="the file with its JSON lines")
    taking.add_argument("--new-id", action="store_true", help="under an id of its own, beside the one it came from")


def _add_permissions(commands: Commands) -> None:
    permissions = commands.add_parser("permissions", allow_abbrev=False, help="what may run, and why")
    actions = permissions.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, help_text: str) -> argparse.ArgumentParser:
        action = actions.add_parser(name, allow_abbrev=False, help=help_text)
        action.add_argument("--cwd", metavar="DIR", default=".", help="the project's directory (default: this one)")
        return action

    _add_grants(actions)
    check = add("check", "read one JSON request a line, answer one decision a line")
    check.add_argument("--json", action="store_true", help="answer JSON, for programs")
    explain = add("explain", "show how the decision on a call comes about; alone: what is in force")
    explain.add_argument("what", metavar="LINE|TOOL", nargs="?", help="a command line, or with JSON a tool's name")
    explain.add_argument("arguments", metavar="JSON", nargs="?", help="the arguments of the tool")
    for action in (check, explain):
        _add_mode(action)
        _add_rules(action)
    trust = add("trust", "let the project's own settings loosen, for their content as it is now")
    trust.add_argument("--revoke", action="store_true", help="trust them no longer")
    trust.add_argument("--yes", action="store_true", help="do not ask")


def _add_grants(actions: Commands) -> None:
    def add(name: str, help_text: str) -> argparse.ArgumentParser:
        action = actions.add_parser(name, allow_abbrev=False, help=help_text)
        action.add_argument("--json", action="store_true", help="print JSON, for programs")
        return action

    add("list", "what was granted for good")
    add("revoke", "take a grant back").add_argument("grant_id", metavar="ID", help="its id, or how that begins")
    audit = add("audit", "what was decided, the last of it")
    audit.add_argument("--verify", action="store_true", help="look through all of it for changes made afterwards")
    audit.add_argument("--limit", metavar="N", type=int, default=50, help="how many decisions (default: 50)")
