"""The interface of a slash command that Punie carries out itself."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

from attrs import frozen

from punie.application.turns.command_outcome import Outcome
from punie.application.turns.live_session import LiveSession
from punie.domain.session.commands import CommandInfo
from punie.domain.values.content import Prompt
from punie.ports.engine import EventSink


@frozen
class Invocation:
    """One use of a command, within an open turn; `arguments` is the text after the command's name.

    `events` are the turn's: an event is shown to the client and logged.
    """

    arguments: str
    prompt: Prompt
    session: LiveSession
    events: EventSink
    turn_id: str


class SlashCommand(Protocol):
    """A command; stateless, and the same object for every session. Lives as long as the process."""

    @property
    @abstractmethod
    def info(self) -> CommandInfo:
        """Name and description, as a person reads them."""
        ...

    def offered(self, session: LiveSession) -> bool:
        """Whether the session offers the command; by default it does."""
        del session
        return True

    @abstractmethod
    async def run(self, invocation: Invocation) -> Outcome:
        """Carry the command out, until the turn is cancelled. Raises what a turn may raise."""
        ...
