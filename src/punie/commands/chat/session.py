"""The session of `punie chat`: the agent in this process, and the session that is opened or gone on with."""

from __future__ import annotations

import logging
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path

from attrs import define, field

from punie.application.agent import PunieAgent
from punie.bootstrap.lifespan import Process
from punie.bootstrap.settings.files import state_dir
from punie.bootstrap.settings.keys import KEEP_SESSIONS, WHILE_BUSY
from punie.bootstrap.settings.sources import Traced, trace_settings
from punie.commands.going_on import session_to_go_on
from punie.commands.running import EXIT_OF_SIGNAL, start_logging
from punie.domain.session.session import OpenedSession, SessionSpec
from punie.ports.people import Peer

_LEAVING = frozenset({"exit", "quit"})

INTERRUPTED = EXIT_OF_SIGNAL[signal.SIGINT]


def leaves(line: str) -> bool:
    """Whether the line ends the conversation: `/exit` or `/quit`, or one of these words alone."""
    first, *more = line.lower().split() or [""]
    return first.removeprefix("/") in _LEAVING and (first.startswith("/") or not more)


@define(slots=False)
class ChatSession:
    """The wishes of one `punie chat`; lives as long as the process. `log` is set up by `start_log`.

    `named` is the directory under the name that the person knows it by, through links.
    """

    environ: Mapping[str, str]
    flags: Mapping[str, str | None]
    cwd: Path
    named: str
    session: str | None
    log: logging.Logger = field(factory=lambda: logging.getLogger("punie"), init=False)

    @cached_property
    def traced(self) -> Traced:
        """The settings. Raises `SettingsError`."""
        return trace_settings(self.environ, self.flags, str(self.cwd))

    @property
    def history_file(self) -> Path | None:
        """The file of earlier prompts; None where the settings keep no sessions."""
        return state_dir(self.environ) / "chat-history.jsonl" if self.traced.settings[KEEP_SESSIONS] else None

    def start_log(self, *, to_file: bool) -> None:
        """Write the log to a file of the state directory, where stderr is the screen, or to stderr."""
        try:
            file = str(state_dir(self.environ) / "chat.log") if to_file else None
            self.log = start_logging(self.environ, file)
        except OSError:  # nowhere to write to: a screen must not be written over
            self.log = start_logging({**self.environ, "PUNIE_LOG_LEVEL": "CRITICAL"}, None)

    @asynccontextmanager
    async def agent(self) -> AsyncGenerator[PunieAgent]:
        """The agent, whose sessions are closed at the end.

        A prompt waits for the turn that runs, unless the settings say something else.
        """
        waits = not any(one.key == WHILE_BUSY.name for one in self.traced.said)
        flags = {**self.flags, WHILE_BUSY.name: "queue"} if waits else self.flags
        process = Process(self.environ, flags, self.log, keeps_model=self.flags.get("model") is not None)
        async with process.agent() as agent:
            yield agent

    async def opened(self, agent: PunieAgent, peer: Peer) -> OpenedSession:
        """The session: a new one, or the one that is named.

        Raises what `Agent.load_session` does, and `CommandError`.
        """
        spec, session_id = SessionSpec(str(self.cwd)), self.session
        if session_id is None:
            return await agent.open_session(spec, lambda _id: peer)
        session_id = await session_to_go_on(agent, session_id, tuple(dict.fromkeys((str(self.cwd), self.named))))
        return await agent.load_session(session_id, spec, lambda _id: peer)
