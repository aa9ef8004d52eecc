"""Checks that need the person: options of questions, diffs on the card, and tools that change."""

from __future__ import annotations

import anyio

from punie_ide.check.declared import read_catalogue
from punie_ide.check.peer import Client, members
from punie_ide.check.report import Findings

SKIP = ("Skip", "reject_once")
MAX_CHANGES = 100


async def permission_options(client: Client, found: Findings) -> None:
    """Whether the person can tell the options apart, and the chosen one comes back."""
    options = (("Blue", "allow_once"), ("Green", "allow_once"), ("Allow from now on", "allow_always"), SKIP)
    for wanted in ("Green", "Allow from now on"):
        said = await client.question(f"Choose the option {wanted}.", options)
        if said in {None, "Skip"}:
            found.skip("the question was not answered. Run the check again and choose what it asks for.")
            return
        found.require(
            said == wanted,
            f"{said} came back for {wanted}. "
            "Show the name of every option, also of two of one kind, and send the optionId of the chosen one.",
        )


async def diffs(client: Client, found: Findings) -> None:
    """Whether a change is shown before it is made."""
    path = client.file(".py")
    change = {"type": "diff", "path": path, "oldText": "colour = 'red'\n", "newText": "colour = 'green'\n"}
    title = "Does this question show that red becomes green?"
    said = await client.question(title, (("Yes", "allow_once"), ("No", "reject_once"), SKIP), change)
    if said in {None, "Skip"}:
        found.skip("the question was not answered.")
        return
    found.require(
        said == "Yes", "The diff of a question is not shown. Show content of type diff on cards and questions."
    )


async def tools_changed(client: Client, found: Findings) -> None:
    """Whether a change of the tools is told, and the new list answers."""
    if not client.discovers:
        found.skip("the client does not declare the extension.")
        return
    before, client.changed = len(client.changes), anyio.Event()
    said = await client.question(
        "Add, remove or switch off one of the IDE's tools now, then choose Done.", (("Done", "allow_once"), SKIP)
    )
    if said != "Done":
        found.skip("no tool was changed. Run the check again and follow the question, if tools of the IDE can change.")
        return
    if len(client.changes) == before:
        with anyio.move_on_after(client.patience.answer_s):
            await client.changed.wait()
    told = client.changes[before:]
    if not found.require(
        told, "No _punie.dev/tools_changed came. Send it in every open session when the list changes."
    ):
        return
    mine = [change for change in told if members(change).get("sessionId") == client.session_id]
    found.require(len(mine) == len(told), "tools_changed needs `sessionId`, that of the open session.")
    found.require(len(told) < MAX_CHANGES, f"{len(told)} notifications came for one change. Send one.")
    entries, faults = await read_catalogue(client)
    found.faults.extend(faults)
    found.require(entries != client.entries, "The list is the same after tools_changed.")
    client.entries = entries
