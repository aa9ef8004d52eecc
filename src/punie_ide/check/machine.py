"""Checks of the client's files and terminals (ACP, file system and terminals)."""

from __future__ import annotations

import sys
from typing import Any

import anyio
from anyio import Path

from punie.mechanics.jsonrpc.errors import RpcError
from punie_ide.check.peer import Client, members
from punie_ide.check.report import Findings, stop

TEXT = "first\r\nsecond: é\nthird: \U0001f40d\nlast"
LIMIT_BYTES = 1_000
_MANY_LINES = 'i=0; while [ $i -lt 200 ]; do echo "line $i é"; i=$((i+1)); done; echo the-end'


async def files(client: Client, found: Findings) -> None:
    """Reading and writing files."""
    if not _has_files(client, found):
        return
    path = client.file(".txt")
    found.require(
        await client.refuses("fs/read_text_file", path=path),
        "A missing file has to be refused with an error, or an agent takes it for an empty file.",
    )
    try:
        await _write(client, path, TEXT)
        text = await _read(client, path)
        found.require(
            text == TEXT, "A file reads differently from what was written. Keep line ends and every character."
        )
        found.require(
            await _on_disk(path) in {TEXT, None},
            "A written file is not saved: programs and git "
            "still see the old text. Save the document in fs/write_text_file.",
        )
        second = await _read(client, path, line=2, limit=1)
        found.require(
            second.rstrip("\n") == "second: é",
            f"`line` counts from 1 and `limit` counts lines; line 2 came out as {second[:40]!r}.",
        )
        rest = await _read(client, path, line=3)
        found.require(rest == TEXT.partition("é\n")[2], "`line` without `limit` reads to the end.")
        await _write(client, path, "")
        found.require(await _read(client, path) == "", "A file that was emptied does not read as empty.")
    finally:
        await _remove(path)


async def unsaved_buffer(client: Client, found: Findings) -> None:
    """Whether an edit that the person did not save is read."""
    if not _has_files(client, found):
        return
    path = client.file(".txt")
    try:
        await _write(client, path, "saved\n")
        said = await client.question(
            f"Open {path}, add the word unsaved in a line of its own, do not save it, then choose Done.",
            (("Done", "allow_once"), ("Skip", "reject_once")),
        )
        if said != "Done":
            found.skip("the file was not edited. Run the check again and follow the question.")
            return
        seen = await _read(client, path)
        found.require(
            "unsaved" in seen,
            "fs/read_text_file answers with the saved text. Read the open "
            "document, so that an agent sees what the person sees.",
        )
        found.require(
            "unsaved" not in (await _on_disk(path) or ""),
            "The file was saved meanwhile, so the check shows "
            "nothing. Switch off saving by itself, or leave the window with the question open.",
        )
    finally:
        await _remove(path)


def _has_files(client: Client, found: Findings) -> bool:
    if client.has("fs", "readTextFile") and client.has("fs", "writeTextFile"):
        return True
    found.skip("the client does not declare fs.readTextFile and fs.writeTextFile; agents use the disk.")
    return False


async def _write(client: Client, path: str, text: str) -> None:
    await client.ask("fs/write_text_file", path=path, content=text)


async def _read(client: Client, path: str, **params: Any) -> str:
    content = (await client.ask_object("fs/read_text_file", path=path, **params)).get("content")
    return content if isinstance(content, str) else stop("The result of fs/read_text_file needs the text `content`.")


async def _on_disk(path: str) -> str | None:
    """The text on this machine's disk; None where the client's files are elsewhere."""
    try:
        return (await Path(path).read_bytes()).decode(errors="replace")
    except OSError:
        return None


async def _remove(path: str) -> None:
    await Path(path).unlink(missing_ok=True)


async def terminals(client: Client, found: Findings) -> None:
    """Starting, watching, killing and releasing programs."""
    if not await _can_run(client, found):
        return
    script = 'printf "%s\\n" "$PUNIE_CHECK"; pwd; exit 3'
    env = [{"name": "PUNIE_CHECK", "value": "two words"}]
    first = await _create(client, "/bin/sh", "-c", script, env=env)
    ended = await client.ask_object("terminal/wait_for_exit", terminalId=first)
    found.require(ended.get("exitCode") == 3, "wait_for_exit has to answer with the exitCode of the program, here 3.")
    shown = await _output(client, first)
    text = shown["output"]
    found.require("two words" in text, "The variables in `env` have to reach the program.")
    found.require(client.cwd.rsplit("/", 1)[-1] in text, "The program has to start in `cwd`.")
    found.require(members(shown.get("exitStatus")).get("exitCode") == 3, "output of an ended program needs exitStatus.")
    literal = await _create(client, "printf", "%s|", "a b", "$HOME", "*")
    await client.ask("terminal/wait_for_exit", terminalId=literal)
    found.require(
        "a b|$HOME|*|" in (await _output(client, literal))["output"],
        "`args` are words for the program as they are. Do not join them to a line for a shell.",
    )
    await client.ask("terminal/release", terminalId=literal)
    await _ends(client, found, first)


async def _ends(client: Client, found: Findings, ended: str) -> None:
    """Killing, releasing, and what has to be refused."""
    running = await _create(client, "sleep", "60")
    found.require((await _output(client, running)).get("exitStatus") is None, "A running program has no exitStatus.")
    await client.ask("terminal/kill", terminalId=running)
    await client.ask("terminal/wait_for_exit", terminalId=running)
    await _output(client, running)
    for terminal_id in (running, ended):
        await client.ask("terminal/release", terminalId=terminal_id)
    for terminal_id in (ended, "punie-ide-check-no-such-terminal"):
        found.require(
            await client.refuses("terminal/output", terminalId=terminal_id),
            "output of a terminal that is unknown or released has to be refused with an error.",
        )
    try:
        missing = await _create(client, "punie-ide-check-no-such-program")
    except RpcError:
        return
    status = await client.ask_object("terminal/wait_for_exit", terminalId=missing)
    found.require(status.get("exitCode") != 0, "A program that does not exist cannot end with exitCode 0.")
    await client.ask("terminal/release", terminalId=missing)


async def truncation(client: Client, found: Findings) -> None:
    """`outputByteLimit`: the end of the output is kept, and `truncated` says so."""
    if not await _can_run(client, found):
        return
    for limit, script in ((LIMIT_BYTES, _MANY_LINES), (LIMIT_BYTES, "echo the-end")):
        terminal = await _create(client, "/bin/sh", "-c", script, outputByteLimit=limit)
        await client.ask("terminal/wait_for_exit", terminalId=terminal)
        shown = await _output(client, terminal)
        text, cut = shown["output"], script == _MANY_LINES
        found.require(
            len(text.encode(errors="replace")) <= limit, f"The output is longer than outputByteLimit, {limit}."
        )
        found.require(shown.get("truncated") is cut, f"`truncated` has to be {str(cut).lower()} here.")
        found.require("the-end" in text, "The end of the output is missing: drop its beginning, not its end.")
        found.require("\ufffd" not in text, "The output was cut inside a character. Cut between characters.")
        await client.ask("terminal/release", terminalId=terminal)


async def _can_run(client: Client, found: Findings) -> bool:
    if not client.has("terminal"):
        found.skip("the client does not declare terminal; agents run programs themselves.")
    elif sys.platform == "win32":
        found.skip("the programs of this check are those of POSIX.")
    else:
        return True
    return False


async def _create(client: Client, command: str, *args: str, **params: Any) -> str:
    made = await client.ask_object("terminal/create", command=command, args=list(args), cwd=client.cwd, **params)
    terminal_id = made.get("terminalId")
    return terminal_id if isinstance(terminal_id, str) else stop("The result of terminal/create needs `terminalId`.")


async def _output(client: Client, terminal_id: str) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for _ in range(20):  # a client may show the last of the output a moment after the program ended
        shown = await client.ask_object("terminal/output", terminalId=terminal_id)
        if not isinstance(shown.get("output"), str) or not isinstance(shown.get("truncated"), bool):
            stop("The result of terminal/output needs the text `output` and `truncated`, true or false.")
        if shown["output"]:
            return shown
        await anyio.sleep(0.005)
    return shown
