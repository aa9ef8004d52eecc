"""The doctor's look at Punie itself: it is started as an IDE would, and spoken to over its pipes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence

import anyio

from punie.commands.doctor.report import Check
from punie.commands.doctor.side_by_side import Case
from punie.domain.model.choice import DIRECT
from punie.mechanics.jsonrpc.errors import RpcError
from punie_ide.local import punie_command
from punie_ide.process import AgentGone
from punie_ide.reference import start_ide

_KEPT_LINES = 3


async def acp(case: Case) -> Sequence[Check]:
    """Handshake, session, prompt, close; in a directory and with settings of its own: the others have their checks."""
    began = anyio.current_time()
    with tempfile.TemporaryDirectory(prefix="punie-doctor-", ignore_cleanup_errors=True) as folder:
        try:
            said = await _conversation(folder, _environment(case.environ, folder))
        except AgentGone as error:
            return [Check("acp", ok=False, detail=error.reason, fix=_last_words(error.stderr))]
        except RpcError as error:
            fix = "The agent started and refused: PUNIE_LOG_LEVEL=DEBUG punie acp shows what it says of it."
            return [Check("acp", ok=False, detail=f"the agent answered with an error: {error}", fix=fix)]
    if not said.strip():
        fix = "PUNIE_LOG_LEVEL=DEBUG punie acp shows what it says of it."
        return [Check("acp", ok=False, detail="the agent answered a prompt with nothing", fix=fix)]
    took_s = anyio.current_time() - began
    return [Check("acp", ok=True, detail=f"handshake, session, prompt and close with a real agent in {took_s:.1f} s")]


async def _conversation(folder: str, environment: Mapping[str, str]) -> str:
    async with start_ide(punie_command(DIRECT), cwd=folder, env=environment) as ide:
        session = await ide.new_session(folder)
        turn = await session.prompt("/help")
        await session.close()
    return turn.text


def _environment(environ: Mapping[str, str], folder: str) -> Mapping[str, str]:
    ours = {name: value for name, value in environ.items() if not name.startswith(("PUNIE_", "OTEL_"))}
    return {**ours, "PUNIE_HOME": os.path.join(folder, "home")}  # noqa: PTH118 - a text for a variable


def _last_words(stderr: Sequence[str]) -> str:
    lines = [line.strip() for line in stderr if line.strip()][-_KEPT_LINES:]
    said = f"Its last words on stderr: {' / '.join(lines)}" if lines else "It said nothing on stderr."
    return f"{said} Try it by hand: punie acp </dev/null"
