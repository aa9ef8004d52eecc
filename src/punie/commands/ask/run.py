"""`punie ask`: one prompt on this machine, without an IDE."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from attrs import define, field

from punie.adapters.acp.blocks import present
from punie.adapters.acp.sessions import encode_usage
from punie.adapters.acp.updates import encode_update
from punie.adapters.console.front_end import ConsoleBroker, DenialTally, HeadlessBroker, JsonLinesSink, TextSink
from punie.application.agent import PunieAgent
from punie.application.turns.budget import Measure
from punie.bootstrap.lifespan import Process
from punie.commands.flags import settings_flags
from punie.commands.running import (
    Exit,
    beside,
    command_environ,
    directory_of,
    exit_at_once,
    person_is_here,
    start_logging,
    watch_signals,
    wrong,
)
from punie.commands.setup.person import EXIT_OF_KIND
from punie.domain.errors import (
    EngineError,
    PunieError,
    SettingsError,
    UnknownSessionError,
)
from punie.domain.session.session import OpenedSession, SessionSpec
from punie.domain.session.turn import StopReason, TurnReport
from punie.domain.tools.catalog import ClientCapabilities
from punie.domain.values.content import Prompt
from punie.domain.values.display import display_safe
from punie.ports.people import Peer


@define
class AskMode:
    """One run of `punie ask`."""

    environ: Mapping[str, str]
    flags: Mapping[str, str | None]
    as_json: bool
    cwd: Path
    prompt: str
    log: logging.Logger
    session: str | None = None
    _tally: DenialTally = field(factory=DenialTally, init=False)
    _lines: JsonLinesSink = field(init=False)
    _interrupted: int | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._lines = JsonLinesSink(sys.stdout, encode_update, self._tally)

    async def run(self) -> int:
        """Open a session, run the prompt, and report the end; returns the exit code."""
        asked_for = self.flags.get("model") is not None
        process = Process(self.environ, self.flags, self.log, keeps_model=asked_for)
        async with PunieAgent(process.session_scope, self.log, process.stored) as agent:
            # Caught inside: a task group would raise the error in a group.
            try:
                code = self._ended(await self._turn(agent, await self._opened(agent)))
            except PunieError as error:
                code = self._failed(error)
        await process.aclose()
        return code

    async def _opened(self, agent: PunieAgent) -> OpenedSession:
        spec, connect = SessionSpec(str(self.cwd)), self._peer
        if self.session is None:
            return await agent.open_session(spec, connect)
        return await agent.load_session(self.session, spec, connect)

    async def _turn(self, agent: PunieAgent, opened: OpenedSession) -> TurnReport:
        self._say({"type": "session", "sessionId": opened.id})
        turn = agent.begin_turn(opened.id, Prompt.of_text(self.prompt))

        def stop(exit_code: int) -> None:
            self._interrupted = exit_code
            agent.cancel(opened.id)

        async with beside(partial(watch_signals, stop)):
            return await turn.run()

    def _peer(self, _session_id: str) -> Peer:
        """The terminal as the session's client; a reader of the output that leaves ends nothing."""
        person = person_is_here() and not self.as_json
        broker = ConsoleBroker(sys.stdin.readline) if person else HeadlessBroker()
        asks = broker.asks if isinstance(broker, ConsoleBroker) else bool
        events = self._lines if self.as_json else TextSink(sys.stdout, sys.stderr, self._tally, asks)
        return Peer(ClientCapabilities(names_options=True), broker, events, person=person)

    def _ended(self, report: TurnReport) -> int:
        code = self._exit_code(report)
        usage, budget = encode_usage(report.usage), present(budget=report.limit)
        self._say({"type": "end", "stopReason": report.stop_reason.value, **budget, "usage": usage, "exitCode": code})
        if code == Exit.DENIED and not self.as_json:
            sys.stderr.write("A call was denied, and none succeeded after it.\n")
        return code

    def _exit_code(self, report: TurnReport) -> int:
        if self._interrupted is not None:
            return self._interrupted
        if report.limit is not None:
            return Exit.LATE if report.limit.endswith(Measure.TIME) else Exit.FAILED
        if report.stop_reason is not StopReason.END_TURN:
            return Exit.FAILED
        return Exit.DENIED if self._tally.denied_last else 0

    def _failed(self, error: PunieError) -> int:
        if isinstance(error, EngineError):
            told, code = error.kind, EXIT_OF_KIND.get(error.kind, Exit.FAILED)
        else:
            told = error.code
            code = Exit.USAGE if isinstance(error, (SettingsError, UnknownSessionError)) else Exit.FAILED
        self._say({"type": "error", "code": told, "message": display_safe(str(error)), "exitCode": code})
        if not self.as_json:
            wrong(str(error))
        return code

    def _say(self, line: dict[str, object]) -> None:
        if self.as_json:
            self._lines.line(line)


def run_ask(*, as_json: bool, cwd: str, prompt: str, session: str | None, **flags: Any) -> int:
    """Run `punie ask`; `flags` are settings. Returns the exit code, or leaves the process with it."""
    environ, directory = command_environ(), directory_of(cwd)
    log = start_logging(environ, None)
    ask = AskMode(environ, settings_flags(**flags), as_json, directory, prompt, log, session)
    return exit_at_once(anyio.run(ask.run))
