"""Checks of `initialize`, `session/new` and the catalogue: what the client declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
from anyio import Path

from punie.api import NAME_PATTERN, NotJsonError, ToolKind, freeze_object, one_line
from punie.mechanics.jsonrpc.errors import RpcError
from punie_ide.check.peer import EXTENSION, Client, is_absolute, items, members, word
from punie_ide.check.report import CheckStopped, Findings
from punie_ide.router import DISCOVER
from shellsight.arguments.roles import Role

MAX_PAGES = 100
MAX_TOOLS = 2_000
_TYPES: Mapping[type, tuple[str, ...]] = {
    str: ("description", "title"),
    bool: (
        "requiresPermission",
        "requires_permission",
        "requiresConfirmation",
        "preview",
        "deprecated",
        "experimental",
    ),
    list: ("categories", "tags", "examples", "platforms"),
    dict: ("annotations", "outputSchema"),
}
_ROLES = frozenset(Role) - {Role.PLAIN}


async def handshake(client: Client, found: Findings) -> None:
    """The parameters of `initialize`."""
    version = client.declared.get("protocolVersion")
    found.require(type(version) is int and version >= 1, "protocolVersion has to be a whole number, such as 1.")
    info = client.declared.get("clientInfo")
    if info is None:
        found.note("No clientInfo: agents cannot tell your users which client has a problem. Send name and version.")
    else:
        named = all(isinstance(members(info).get(key), str) and info[key] for key in ("name", "version"))
        found.require(named, "clientInfo needs the texts `name` and `version`.")
    said = client.declared.get("clientCapabilities", {})
    found.require(isinstance(said, dict), "clientCapabilities has to be an object.")
    flags = {"fs." + key: value for key, value in members(client.capabilities.get("fs")).items() if key != "_meta"}
    for name, value in {**flags, "terminal": client.capabilities.get("terminal", False)}.items():
        found.require(isinstance(value, bool), f"{name} has to be true or false; agents take anything else for false.")
    meta = members(members(client.capabilities.get("_meta")).get(EXTENSION))
    if "discoverTools" in meta:
        found.require(
            client.discovers, 'discoverTools needs "version": 1, a number; as it is, no agent asks for tools.'
        )
        minor = client.extension.get("minor", 0)
        found.require(type(minor) is int and minor >= 0, "discoverTools.minor has to be a whole number, such as 1.")
    found.note(f"ACP {version}, {one_line(str(members(info).get('name', 'a client without a name')), 60)}.")


async def session(client: Client, found: Findings) -> None:
    """The parameters of `session/new`."""
    if found.require(is_absolute(client.cwd), "session/new needs `cwd`, an absolute path."):
        there = await Path(client.cwd).is_dir()
        found.require(there, "cwd is not a directory of this machine. Send the project's directory.")
    servers = client.opened.get("mcpServers")
    found.require(isinstance(servers, list), "session/new needs `mcpServers`, a list, which may be empty.")
    names = [members(server).get("name") for server in items(servers)]
    for server in map(members, items(servers)):
        found.require(isinstance(server.get("name"), str) and server["name"], "An MCP server needs a `name`.")
        if server.get("type") in {"http", "sse"}:
            good = str(server.get("url")).startswith(("http://", "https://")) and isinstance(
                server.get("headers"), list
            )
            found.require(good, "An MCP server of type http or sse needs `url` and the list `headers`.")
        elif server.get("type", "stdio") == "stdio":
            lists = all(isinstance(server.get(key), list) for key in ("args", "env"))
            good = isinstance(server.get("command"), str) and lists
            found.require(good, "An MCP server on stdio needs `command` and the lists `args` and `env`.")
    found.require(len(set(map(str, names))) == len(names), "Two MCP servers have the same name; agents keep one.")
    if names:
        found.note(f"MCP servers: {one_line(', '.join(map(str, names)), 200)}.")


async def read_catalogue(client: Client) -> tuple[list[Any], list[str]]:
    """All pages of the catalogue, as far as they can be read, and the faults of the pages."""
    entries: list[Any] = []
    pages, limit = Findings("pages"), client.patience.discovery_s
    with anyio.move_on_after(limit) as scope:
        try:
            await _pages(client, pages, entries)
        except RpcError as error:
            pages.require(False, f"{DISCOVER} was answered with error {error.code}: {one_line(error.message, 100)}.")
        except CheckStopped as stopped:
            pages.require(False, str(stopped))
    pages.require(
        not scope.cancelled_caught,
        f"The catalogue took longer than {limit:g} s. Answer at once, and tell of tools that come "
        "later with _punie.dev/tools_changed.",
    )
    return entries[:MAX_TOOLS], pages.faults


async def _pages(client: Client, found: Findings, entries: list[Any]) -> None:
    cursors: set[str] = set()
    cursor: dict[str, str] = {}
    for _ in range(MAX_PAGES):
        page = await client.ask_object(DISCOVER, cwd=client.cwd, **cursor)
        found.require(isinstance(page.get("tools"), list), "An answer to discovery needs `tools`, a list.")
        found.require(isinstance(page.get("extends", False), bool), "`extends` has to be true or false.")
        entries.extend(items(page.get("tools")))
        if not found.require(len(entries) <= MAX_TOOLS, f"Agents read the first {MAX_TOOLS} tools only."):
            return
        following = page.get("nextCursor")
        if following is None:
            return
        if not found.require(isinstance(following, str), "`nextCursor` has to be a text."):
            return
        if not found.require(following not in cursors, "A cursor came twice, so the catalogue never ends."):
            return
        cursors.add(following)
        cursor = {"cursor": following}
    found.require(False, f"The catalogue goes beyond {MAX_PAGES} pages; the rest is never read.")


async def discovery(client: Client, found: Findings) -> None:
    """The catalogue while `session/new` was open, the same once more, and requests that have to be refused."""
    if not client.discovers:
        found.skip("the client does not declare the extension (docs/ide-authors.md).")
        return
    found.faults.extend(client.discovery_faults)
    if found.faults:
        return
    again, faults = await read_catalogue(client)
    found.faults.extend(faults)
    found.require(
        again == client.entries,
        "The catalogue differs when it is asked for again, "
        "though no change was told. Send the same tools in the same order.",
    )
    found.require(
        await client.refuses(DISCOVER, cwd=client.cwd, cursor="punie-ide-check-no-such-cursor"),
        "An unknown cursor has to be refused with error -32602.",
    )
    found.require(
        await client.refuses(DISCOVER, cwd=client.cwd, sessionId="punie-ide-check-no-such-session"),
        "Discovery for an unknown session has to be refused with error -32002.",
    )
    found.note(f"{len(again)} tools.")


async def schemas(client: Client, found: Findings) -> None:
    """Each entry of the catalogue by itself."""
    if not client.discovers:
        found.skip("the client does not declare the extension.")
        return
    names: set[str] = set()
    for position, raw in enumerate(client.entries[:MAX_TOOLS]):
        name = members(raw).get("name")
        about = found.about(one_line(name, 64) if isinstance(name, str) and name else f"Entry {position}")
        if about.require(isinstance(raw, dict), "it is not an object."):
            good = isinstance(name, str) and NAME_PATTERN.fullmatch(name) and "__" not in name
            about.require(good, "its name has to be 1 to 64 of A-Z a-z 0-9 _ - without two underscores in a row.")
            look_at_entry(client, members(raw), about)
        about.require(word(name) not in names, "an earlier entry has the same name; this one is never offered.")
        names |= {name} if isinstance(name, str) else set()
    found.note(f"{len(names)} entries can be used.")


def look_at_entry(client: Client, entry: dict[str, Any], found: Findings) -> None:
    """The entry of one tool, of the client's catalogue or of an MCP server, but for its name."""
    described, kinds = entry.get("description"), [kind.value for kind in ToolKind]
    found.require(entry.get("kind", "other") in kinds, f"its kind is none of {', '.join(kinds)}.")
    said = isinstance(described, str) and described.strip()
    found.require(said, "it needs a description, whose first sentence is all that a model may see.")
    for key, kind in [(key, kind) for kind, keys in _TYPES.items() for key in keys]:
        found.require(entry.get(key) is None or isinstance(entry[key], kind), f"its {key} has the wrong type.")
    previewed = not entry.get("preview") or client.minor >= 1
    found.require(previewed, 'it offers a preview, but the client does not declare "minor": 1.')
    schema = input_schema(entry)
    if found.require(isinstance(schema, dict), "its inputSchema is not an object."):
        _look_at_schema(client, entry, members(schema), found)


def _look_at_schema(client: Client, entry: dict[str, Any], schema: dict[str, Any], found: Findings) -> None:
    is_object = schema.get("type", "object") == "object"
    if not found.require(is_object, 'its inputSchema has to describe an object ("type": "object").'):
        return
    try:
        problem = client.schemas.schema_problem(freeze_object(schema))
        if not found.require(problem is None, f"its inputSchema cannot be used: {problem}."):
            return
        for example in examples(entry):
            problems = client.schemas.problems(freeze_object(schema), freeze_object(example))
            found.require(not problems, f"its example does not fit its inputSchema: {'; '.join(problems)}.")
    except NotJsonError as error:
        found.require(False, f"its inputSchema cannot be used: {error}.")
    properties = members(schema.get("properties"))
    unknown = set(map(str, items(schema.get("required")))) - set(properties)
    known = not unknown or "properties" not in schema
    found.require(known, f"it requires {', '.join(sorted(unknown))}, which its properties do not have.")
    for name, described in properties.items():
        role = members(described).get("x-punie-role")
        shown = f"the role {one_line(str(role), 30)!r} of {one_line(name, 40)}"
        found.require(role is None or word(role) in _ROLES, f"{shown} is unknown.")


def input_schema(entry: dict[str, Any]) -> Any:
    """The schema of an entry's arguments as agents read it."""
    given = (entry[key] for key in ("inputSchema", "parameters") if entry.get(key) is not None)
    return next(given, {"type": "object"})


def examples(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The arguments of an entry's examples."""
    said = [members(example).get("arguments") for example in items(entry.get("examples"))]
    return [members(arguments) for arguments in said if isinstance(arguments, dict)]


def looks_only(entry: dict[str, Any]) -> bool:
    """Whether a call of the tool is known to change nothing."""
    annotations = members(entry.get("annotations"))
    if annotations.get("destructiveHint") is True or entry.get("requiresPermission") is True:
        return False
    return annotations.get("readOnlyHint") is True or word(entry.get("kind")) in {"read", "search"}


def example_of(entry: dict[str, Any]) -> dict[str, Any] | None:
    """Arguments to call the tool with; None where none are known."""
    known = examples(entry)
    if known:
        return known[0]
    return None if members(input_schema(entry)).get("required") else {}
