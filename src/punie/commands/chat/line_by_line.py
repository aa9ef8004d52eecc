"""`punie chat` line by line: in a pipe, and on a terminal that no screen can be drawn on."""

from __future__ import annotations

import sys
from functools import partial

import anyio
import anyio.to_thread
from attrs import define, field

from punie.adapters.console.events import TextSink
from punie.adapters.console.forms import typed_forms
from punie.adapters.console.questions import ConsoleBroker, HeadlessBroker
from punie.adapters.console.tally import RunTally
from punie.application.agent import PunieAgent
from punie.commands.chat.session import INTERRUPTED, ChatSession, leaves
from punie.commands.exit_of_turn import exit_of_turn
from punie.commands.mentions import mentioned
from punie.commands.running import Exit, beside, person_is_here, watch_signals, wrong
from punie.commands.setup.person import EXIT_OF_KIND
from punie.domain.errors import EngineError, PunieError
from punie.domain.tools.catalog import ClientCapabilities
from punie.ports.people import Peer

LINE_BYTES = 1_048_576
"""A longer line is read as several."""


async def talk(chat: ChatSession) -> int:
    """Take prompts line by line until the input ends; returns the exit code, which is that of the last prompt.

    Raises `PunieError` and `CommandError` where there is no session.
    """
    chat.start_log(to_file=False)
    async with chat.agent() as agent:
        return await _talk(chat, agent)


async def _talk(chat: ChatSession, agent: PunieAgent) -> int:
    person = person_is_here()
    broker = ConsoleBroker(_line, cwd=str(chat.cwd)) if person else HeadlessBroker()
    asks = broker.asks if isinstance(broker, ConsoleBroker) else bool
    tally = RunTally()
    sink = TextSink(sys.stdout, sys.stderr, tally, asks)
    peer = Peer(ClientCapabilities(names_options=True), broker, sink, elicitor=typed_forms(broker), person=person)
    opened = await chat.opened(agent, peer)
    agent.greet(opened.id)
    lines = _Lines(agent, opened.id, tally, person=person)
    async with beside(partial(watch_signals, lines.signalled)):
        await lines.read()
    return lines.exit_code


@define
class _Lines:
    """The prompts of one input; lives until its end."""

    agent: PunieAgent
    session_id: str
    tally: RunTally
    person: bool
    exit_code: int = Exit.DONE
    _runs: bool = field(default=False, init=False)
    _reading: anyio.CancelScope = field(factory=anyio.CancelScope, init=False)

    async def read(self) -> None:
        """Run each line as a prompt."""
        with self._reading:
            while True:
                if self.person:
                    sys.stderr.write("> ")
                    sys.stderr.flush()
                line = await anyio.to_thread.run_sync(_line, abandon_on_cancel=True)
                if not line or leaves(line):
                    return
                if line.strip():
                    await self._run(line.strip())

    async def _run(self, text: str) -> None:
        self._runs, self.tally.denied_last = True, False
        try:
            session = self.agent.place(self.session_id).session
            found = await mentioned(session, text)
            sys.stderr.write("".join(f"- {note}\n" for note in found.notes))
            report = await self.agent.begin_turn(self.session_id, found.prompt).run()
            self.exit_code = exit_of_turn(report, session, text, denied=self.tally.denied_last)
        except PunieError as error:
            kind = error.kind if isinstance(error, EngineError) else ""
            self.exit_code = wrong(str(error), EXIT_OF_KIND.get(kind, Exit.FAILED))
        finally:
            self._runs = False
            sys.stdout.flush()

    def signalled(self, exit_code: int) -> None:
        """Ctrl-C stops the turn, or leaves where none runs; any other signal leaves."""
        self.agent.cancel(self.session_id)
        if not self._runs or exit_code != INTERRUPTED or not self.person:
            self.exit_code = exit_code
            self._reading.cancel()


def _line() -> str:
    """The next line of the input, whatever its encoding; empty at its end. Blocks."""
    line = sys.stdin.buffer.readline(LINE_BYTES)
    return line.decode("utf-8", "replace").replace("\r\n", "\n")
