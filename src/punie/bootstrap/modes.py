"""The ways to run Punie: an ACP agent on stdio. Each is one function from arguments to an exit code."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Mapping

import anyio
from attrs import define, field

from punie.adapters.acp.agent import AcpAgent
from punie.adapters.acp.jsonrpc import Connection
from punie.adapters.acp.stdio import MAX_LINE_BYTES, FdTransport, claim_stdin, claim_stdout
from punie.application.agent import PunieAgent
from punie.bootstrap.lifespan import Process
from punie.bootstrap.logs import start_logging

EXIT_DONE = 0
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143
_EXIT_OF = {signal.SIGINT: EXIT_INTERRUPTED, signal.SIGTERM: EXIT_TERMINATED}


@define
class AcpMode:
    """`punie acp`: one client on stdin and stdout, served until it hangs up or a signal comes."""

    environ: Mapping[str, str]
    flags: Mapping[str, str | None]
    log: logging.Logger
    _exit_code: int = field(default=EXIT_DONE, init=False)

    async def run(self, read_fd: int, write_fd: int) -> int:
        """Serve the client; gives the exit code."""
        process = Process(self.environ, self.flags, self.log)
        with FdTransport(read_fd, write_fd, _max_line_bytes(self.environ)) as transport:
            connection = Connection(transport, log=self.log.getChild("wire"))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch_signals, connection)
                async with PunieAgent(process.session_scope, self.log) as agent:
                    router = AcpAgent(agent, connection, self.log)
                    tasks.start_soon(_warm_up, router, connection, process)
                    await connection.run(router)
                tasks.cancel_scope.cancel()
        return self._exit_code

    async def _watch_signals(self, connection: Connection) -> None:
        with anyio.open_signal_receiver(*_EXIT_OF) as signals:
            async for number in signals:
                self._exit_code = _EXIT_OF[number]
                connection.stop()


async def _warm_up(router: AcpAgent, connection: Connection, process: Process) -> None:
    """Load what is heavy once `initialize` was answered, and not before."""
    await router.initialized.wait()
    await anyio.lowlevel.checkpoint()
    await connection.flushed()
    process.warm_up.start()


def run_acp(*, model: str | None, log_file: str | None) -> int:
    """Serve one ACP client on this process's stdin and stdout; gives the exit code, or leaves with it."""
    write_fd = claim_stdout()
    read_fd = claim_stdin()
    try:
        log = start_logging(os.environ, log_file)
    except OSError as error:
        sys.stderr.write(f"punie: --log-file {log_file} cannot be written: {error.strerror}. Name another file.\n")
        return EXIT_USAGE
    mode = AcpMode(os.environ, {"model": model}, log)
    code = anyio.run(mode.run, read_fd, write_fd)
    logging.shutdown()
    sys.stderr.flush()
    # Threads that still import a library must not hold up the exit, nor be torn down while inside it.
    os._exit(code)


def _max_line_bytes(environ: Mapping[str, str]) -> int:
    given = environ.get("PUNIE_MAX_LINE_BYTES", "")
    return int(given) if given.isdigit() and int(given) > 0 else MAX_LINE_BYTES
