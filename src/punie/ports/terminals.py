"""Programs of a session."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from punie.domain.terminal import Command, ExitStatus, TerminalOutput


@runtime_checkable
class Terminals(Protocol):
    """Starts programs and keeps their output; lives as long as the session. Nothing it started outlives it.

    Every method raises `UnknownTerminalError` for an id it does not hold, and `ToldToModel` with the reason where the
    other side refuses.
    """

    @property
    @abstractmethod
    def shown_by_client(self) -> bool:
        """Whether the client can show a terminal live by its id."""
        ...

    @abstractmethod
    async def create(self, command: Command) -> str:
        """Start the program and give the terminal's id at once. Cancelled while starting, it leaves nothing behind."""
        ...

    @abstractmethod
    async def output(self, terminal_id: str) -> TerminalOutput:
        """What it printed so far, the last `output_limit_bytes` of it, and the file with more where one is kept."""
        ...

    @abstractmethod
    async def wait(self, terminal_id: str) -> ExitStatus:
        """Wait until the program itself ended; what it left in the background does not count."""
        ...

    @abstractmethod
    async def kill(self, terminal_id: str) -> None:
        """End the program and its process group; the terminal and its output stay until released. Idempotent."""
        ...

    @abstractmethod
    async def release(self, terminal_id: str) -> None:
        """Kill what still runs and forget the terminal; the id is unknown afterwards."""
        ...
