"""`punie ide check`: the kit's agent on stdin and stdout."""

from __future__ import annotations

import json
import os
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from punie.adapters.schema.argument_validator import JsonSchemaRsValidator
from punie.commands.running import Exit, beside, exit_at_once, start_logging, watch_signals, wrong
from punie.mechanics.files import write_at_once
from punie.mechanics.jsonrpc.stdio import FdTransport, claim_stdin, claim_stdout
from punie_ide.check.agent import CheckAgent, Save


def run_check(*, report: str | None) -> int:
    """Serve one IDE until it hangs up; returns the exit code."""
    target = None if report is None else Path(report).absolute()
    if target is not None and (target.is_dir() or not target.parent.is_dir()):
        return wrong(f"--report {report} cannot be written: name a file in a folder that exists.")
    write_fd = claim_stdout()
    read_fd = claim_stdin()
    log = start_logging(os.environ, None)
    save: Save | None = None if target is None else partial(_save, target)

    async def serve() -> int:
        exit_code: int = Exit.DONE
        with closing(FdTransport(read_fd, write_fd)) as transport:
            agent = CheckAgent(transport, JsonSchemaRsValidator(), save, log=log.getChild("ide_check"))

            def stop(signalled: int) -> None:
                nonlocal exit_code
                exit_code = signalled
                agent.connection.stop()

            async with beside(partial(watch_signals, stop)):
                await agent.run()
        return exit_code

    return exit_at_once(anyio.run(serve))


async def _save(target: Path, report: dict[str, Any]) -> None:
    text = json.dumps(report, ensure_ascii=False, indent=1) + "\n"
    await anyio.to_thread.run_sync(write_at_once, target, text, 0o644)
