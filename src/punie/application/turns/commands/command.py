"""What a slash command of Punie's is."""

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
    """One use of a command, within a turn that is open: what was typed after the name, and where it works.

    What `events` take is shown and kept like everything of the turn.
    """

    arguments: str
    prompt: Prompt
    session: LiveSession
    events: EventSink
    turn_id: str


class SlashCommand(Protocol):
    """Holds nothing; the same one serves every session."""

    @property
    @abstractmethod
    def info(self) -> CommandInfo:
        """What a person is told of it."""
        ...

    def offered(self, session: LiveSession) -> bool:
        """Whether there is any use for it in that session; by default there is."""
        del session
        return True

    @abstractmethod
    async def run(self, invocation: Invocation) -> Outcome:
        """Do it. It is cancelled with its turn. Raises what a turn may raise."""
        ...
