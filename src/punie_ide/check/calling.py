"""Checks of calls of the client's own tools: results, refusals, previews, and a call that is cancelled."""

from __future__ import annotations

from typing import Any

import anyio

from punie.api import NotJsonError, freeze_object, one_line
from punie.mechanics.jsonrpc.errors import REQUEST_CANCELLED, RpcError
from punie_ide.check.declared import example_of, looks_only
from punie_ide.check.peer import Client, is_absolute, items, members, word
from punie_ide.check.report import CheckStopped, Findings
from punie_ide.router import CALL, DISCOVER, PREVIEW

MAX_CALLED = 20
SLOW_MS = 1_000
BEGIN_S = 0.2
CANCEL_S = 2.0
_TEXT_FIELDS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "diff": ("path", "newText"),
}


def _callable(client: Client) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The entries that may be called without a question, with arguments."""
    safe = [members(entry) for entry in client.entries if looks_only(members(entry))]
    known = ((entry, example_of(entry)) for entry in safe if isinstance(entry.get("name"), str))
    return [(entry, arguments) for entry, arguments in known if arguments is not None][:MAX_CALLED]


def _time_ms(entry: dict[str, Any]) -> float:
    said = entry.get("estimatedTimeMs")
    return said if isinstance(said, (int, float)) else 0


async def calls(client: Client, found: Findings) -> None:
    """Calls of the tools that only look; the results are kept for the next check."""
    if not client.discovers or not client.entries:
        found.skip("the client offers no tools by the extension.")
        return
    client.results.clear()
    quick = [(entry, arguments) for entry, arguments in _callable(client) if _time_ms(entry) < SLOW_MS]
    for number, (entry, arguments) in enumerate(quick):
        name = entry["name"]
        params = {"toolCallId": f"call-{number}", "name": name, "arguments": arguments}
        try:
            result = await client.ask(CALL, **params)
            client.results.append((entry, result))
            failed = members(result).get("isError") is True
            found.require(not failed, f"{name} fails with the arguments of its own example ({_said(result)}).")
        except RpcError as error:
            found.require(
                False,
                f"{name} was answered with error {error.code}: {one_line(error.message, 100)}. "
                'A tool that fails answers with "isError": true and a text, which the model can act on.',
            )
        except CheckStopped as stopped:
            found.require(False, f"{name}: {stopped}")
    missing = await _is_refused(client, name="punie-ide-check-no-such-tool")
    found.require(missing, "A call of an unknown tool has to be refused, with error -32602.")
    if quick:
        first, arguments = quick[0]
        foreign = await _is_refused(client, name=first["name"], arguments=arguments, sessionId="punie-ide-check-none")
        found.require(foreign, "A call in an unknown session has to be refused, with error -32002.")
    else:
        found.note("No tool could be called: give those that only look kind read or search and an example.")
    found.note(f"{len(quick)} of {len(client.entries)} tools were called.")


async def _is_refused(client: Client, **params: Any) -> bool:
    try:
        result = await client.ask(CALL, **{"toolCallId": "refused", "arguments": {}, **params})
    except RpcError:
        return True
    return members(result).get("isError") is True


def _said(result: Any) -> str:
    texts = [str(members(block).get("text", "")) for block in items(members(result).get("content"))]
    return one_line(" ".join(texts), 120) or "without a reason"


async def results(client: Client, found: Findings) -> None:
    """The form of each result."""
    if not client.results:
        await calls(client, Findings("calls"))
    if not client.results:
        found.skip("no tool could be called (see calls).")
        return
    for entry, result in client.results:
        _look_at_result(client, entry, members(result), found.about(entry["name"]))
    found.note(f"{len(client.results)} results.")


def _look_at_result(client: Client, entry: dict[str, Any], answer: dict[str, Any], found: Findings) -> None:
    content, structured = answer.get("content"), answer.get("structuredContent")
    if not found.require(isinstance(content, list), "its result needs `content`, a list of content blocks."):
        return
    found.require(isinstance(answer.get("isError", False), bool), "isError has to be true or false.")
    for block in map(members, items(content)):
        _look_at_block(client, block, found)
    found.require(structured is None or isinstance(structured, dict), "structuredContent has to be an object.")
    found.require(content or members(structured), "its result is empty. Say in a text what was done or found.")
    schema = entry.get("outputSchema")
    if isinstance(schema, dict) and not answer.get("isError"):
        _look_at_output(client, members(schema), structured, found)
    _look_at_locations(client, answer, found)


def _look_at_block(client: Client, block: dict[str, Any], found: Findings) -> None:
    kind = word(block.get("type"))
    if kind == "resource":
        inner = members(block.get("resource"))
        has_one = isinstance(inner.get("text"), str) != isinstance(inner.get("blob"), str)
        good = isinstance(inner.get("uri"), str) and has_one
        found.require(good, "a resource needs `uri`, and `text` or `blob`.")
    elif kind not in _TEXT_FIELDS:
        shown = one_line(kind, 30)
        found.require(
            False, f"a content block of type {shown!r} is none of text, image, resource_link, resource and diff."
        )
    elif kind != "diff" or found.require(
        client.minor >= 1, 'a diff in a result needs "minor": 1 in the declaration of discoverTools.'
    ):
        for name in _TEXT_FIELDS[kind]:
            found.require(isinstance(block.get(name), str), f"a block of type {kind} needs the text `{name}`.")
        if kind == "diff":
            _look_at_change(block, found)


def _look_at_change(change: dict[str, Any], found: Findings) -> None:
    found.require(is_absolute(change.get("path")), "the path of a diff has to be absolute.")
    texts = isinstance(change.get("newText"), str) and isinstance(change.get("oldText"), (str, type(None)))
    found.require(texts, "a diff needs `newText`, and `oldText` as a text or null.")
    found.require(change.get("newText") != change.get("oldText"), "a diff has to change something.")


def _look_at_locations(client: Client, answer: dict[str, Any], found: Findings) -> None:
    if "locations" not in answer:
        return
    found.require(client.minor >= 1, 'locations in a result need "minor": 1 in the declaration of discoverTools.')
    found.require(isinstance(answer["locations"], list), "`locations` has to be a list.")
    for place in map(members, items(answer["locations"])):
        line = place.get("line")
        found.require(is_absolute(place.get("path")), "the path of a location has to be absolute.")
        found.require(line is None or (type(line) is int and line >= 1), "the line of a location counts from 1.")


def _look_at_output(client: Client, schema: dict[str, Any], structured: Any, found: Findings) -> None:
    if not found.require(
        isinstance(structured, dict), "its outputSchema promises structuredContent, which is missing."
    ):
        return
    try:
        promised, given = freeze_object(schema), freeze_object(structured)
        problem = client.schemas.schema_problem(promised)
        wrong = (problem,) if problem else client.schemas.problems(promised, given)
    except NotJsonError as error:
        wrong = (str(error),)
    found.require(not wrong, f"structuredContent does not fit its outputSchema: {'; '.join(wrong)}.")


async def cancel(client: Client, found: Findings) -> None:
    """A call that is cancelled while it runs."""
    slow = [pair for pair in _callable(client) if _time_ms(pair[0]) >= SLOW_MS] if client.discovers else []
    if not slow:
        found.skip(
            'it takes a tool that only looks and takes a second or more: an entry with "estimatedTimeMs": 5000, '
            "and an example that takes so long."
        )
        return
    entry, arguments = max(slow, key=lambda pair: _time_ms(pair[0]))
    name = entry["name"]
    with anyio.move_on_after(BEGIN_S) as waiting:
        await client.ask(CALL, toolCallId="cancelled", name=name, arguments=arguments)
    if not waiting.cancelled_caught:
        found.note(f"{name} was done before it could be cancelled.")
        return
    answer: dict[str, Any] | None = None
    with anyio.move_on_after(min(CANCEL_S, client.patience.answer_s)):
        answer = await client.tap.answered(client.tap.last_id)
    if not found.require(
        answer is not None,
        f"{name} went on after $/cancel_request. "
        f"Stop the tool and answer with error {REQUEST_CANCELLED}, or with what it has, within {CANCEL_S:g} s.",
    ):
        return
    error = members(answer)
    found.require(
        not error or error.get("code") == REQUEST_CANCELLED,
        f"{name}: the error of a cancelled call is {REQUEST_CANCELLED}, not {error.get('code')}.",
    )
    await client.ask(DISCOVER, cwd=client.cwd)
    found.note(f"{name} stopped.")


async def previews(client: Client, found: Findings) -> None:
    """Previews of the entries that offer them: the form, no effect, and a diff that starts from the file's text."""
    offered = [members(entry) for entry in client.entries if members(entry).get("preview") is True]
    if not offered or client.minor < 1:
        found.skip('no entry says "preview": true (version 1.1 of the extension).')
        return
    told = 0
    for entry in offered[:MAX_CALLED]:
        arguments, name = example_of(entry), entry.get("name")
        if arguments is None:
            found.note(f"{name} was not previewed: it has no example.")
            continue
        params, about = {"toolCallId": "previewed", "name": name, "arguments": arguments}, found.about(name)
        try:
            first, second = [await client.ask_object(PREVIEW, **params) for _ in range(2)]
        except RpcError as error:
            about.require(False, f"its preview was answered with error {error.code}.")
            continue
        about.require(first == second, "a second preview differs. A preview changes nothing.")
        await _look_at_preview(client, first, about)
        told += 1
    found.note(f"{told} previews.")


async def _look_at_preview(client: Client, preview: dict[str, Any], found: Findings) -> None:
    found.require(any(key in preview for key in ("diff", "locations", "text")), "its preview shows nothing.")
    found.require(isinstance(preview.get("text", ""), str), "the `text` of its preview has to be a text.")
    found.require(isinstance(preview.get("diff", []), list), "the `diff` of its preview has to be a list.")
    _look_at_locations(client, preview, found)
    for change in map(members, items(preview.get("diff"))):
        _look_at_change(change, found)
        path, old = change.get("path"), change.get("oldText")
        if client.has("fs", "readTextFile") and isinstance(old, str) and is_absolute(path):
            now = (await client.ask_object("fs/read_text_file", path=path)).get("content")
            found.require(now == old, "the oldText of its preview is not the text of the file, unsaved edits included.")
