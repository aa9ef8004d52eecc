"""The check of the MCP servers that the client passes: their listings, calls, and a call that is taken back."""

from __future__ import annotations

import anyio
import msgspec
from msgspec import Raw

from punie.api import one_line
from punie_ide.check.declared import example_of, look_at_entry, looks_only
from punie_ide.check.peer import Client, PassedServer, items, members
from punie_ide.check.report import CheckStopped, Findings, stop

MAX_CALLED = 5
"""The tools of one server that are called."""

TAKEN_BACK_S = 0.05
_LOST = ("[content that Punie cannot read: ", "Warning: the structured ", "Warning: the tool promises a structured ")
"""The beginnings of what Punie says in a result of the parts that do not have MCP's form."""


async def servers(client: Client, found: Findings) -> None:
    """Each server that the client passes as a program or by its address."""
    passed = [one for one in items(client.opened.get("mcpServers")) if members(one).get("type") != "acp"]
    if not passed or client.reach is None:
        found.skip("the client passes no MCP server that is a program or has an address.")
        return
    async with client.reach([Raw(msgspec.json.encode(one)) for one in passed], client.cwd) as reached:
        for server in reached:
            about = found.about(one_line(server.name, 40))
            try:
                found.note(await _used(client, server, about))
            except CheckStopped as stopped:
                about.require(False, str(stopped))


async def _used(client: Client, server: PassedServer, found: Findings) -> str:
    """Looks at the tools of the server and calls some of them; returns how many."""
    shown, limit = one_line(server.name, 40), client.patience.answer_s
    listed, dropped = await server.listing()
    for fault in dropped:
        found.require(False, fault)
    for entry in listed:
        look_at_entry(client, entry, found.about(f"{shown}, {entry['name']}"))
    looking = [(entry["name"], example_of(entry)) for entry in listed if looks_only(entry)]
    calls = [(name, arguments) for name, arguments in looking if arguments is not None][:MAX_CALLED]
    for name, arguments in calls:
        about, said = found.about(f"{shown}, {name}"), ""
        with anyio.move_on_after(limit):
            succeeded, said = await server.call(name, arguments)
            about.require(succeeded, f"it fails without arguments ({one_line(said, 120)}).")
        for line in said.splitlines():
            form = not line.startswith(_LOST)
            about.require(form, f"its result does not have MCP's form ({one_line(line, 200)}).")
    for call in calls[:1]:
        with anyio.move_on_after(TAKEN_BACK_S):
            await server.call(*call)
    again: object = None
    with anyio.move_on_after(limit):
        again, _ = await server.listing()
    if again is None:
        stop(f"it does not answer within {limit:g} s after a call was cancelled. Stop the tool, and go on serving.")
    found.require(again == listed, "its list differs when it is asked for again, though nothing changed.")
    return f"{shown}: {len(calls)} of {len(listed)} tools were called."
