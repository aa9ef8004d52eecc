"""`punie ask --detach`: the turn goes on in a process of its own, which outlives the terminal."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Final

from punie.bootstrap.optional_parts import user_settings
from punie.bootstrap.settings.keys import DURABLE
from punie.commands.ask.prompt import PromptText
from punie.commands.running import CommandError, Exit, told, wrong

FLAG: Final = "--detach"
OFF: Final = "--detach needs turns that survive their process: set `turns.durable`, or PUNIE_TURNS_DURABLE=true."


def detach(environ: Mapping[str, str], words: Sequence[str], prompt: PromptText, *, as_json: bool) -> int:
    """Start `punie` again with those words of the command line, and print the id of the turn that it begins.

    The other process belongs to no terminal. It asks no one: calls that need an answer are denied, as without a
    terminal. Blocks until the turn began or could not begin; returns the exit code. Raises `CommandError`.
    """
    if not user_settings(environ, {})[DURABLE]:
        raise CommandError(OFF)
    rest = list(words)
    rest.remove(FLAG)
    at = rest.index("ask") + 1
    command = [sys.executable, "-m", "punie", *rest[:at], *(() if "--json" in rest else ("--json",)), *rest[at:]]
    with tempfile.TemporaryFile() as piped:
        piped.write(prompt.piped.encode())
        piped.seek(0)
        stdin = piped if prompt.piped else subprocess.DEVNULL
        child = subprocess.Popen(  # noqa: S603 - this program, with the words that it was given
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, env=environ
        )
    session: object = None
    for line in child.stdout or ():
        said = json.loads(line)
        session = said.get("sessionId", session)
        if said["type"] == "turn":
            known = {"turnId": said["turnId"], "sessionId": session, "pid": child.pid}
            return told(known, f"{said['turnId']}\n", as_json=as_json)
        if said["type"] in {"error", "end"}:
            return _ended(said, as_json=as_json)
    return child.wait()


def _ended(said: Mapping[str, Any], *, as_json: bool) -> int:
    """The exit code of a turn that could not begin, or that needed no model and is over."""
    code = int(said.get("exitCode", Exit.FAILED))
    if as_json:
        return told(said, "", as_json=True, exit_code=code)
    return wrong(str(said["message"]), code) if "message" in said else code
