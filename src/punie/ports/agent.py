"""The driving port: everything a front end (an ACP connection, a console) may ask of Punie."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from punie.domain.content import Prompt
from punie.domain.execution import RunningCall, ToolStatistics
from punie.domain.modes import Mode
from punie.domain.session import OpenedSession, SessionSpec
from punie.domain.tool_listing import ListedTool, ToolListing
from punie.domain.turn import TurnReport
from punie.ports.peer import Peer


@runtime_checkable
class RunningTurn(Protocol):
    """A turn that was accepted; it holds its session's place until `run` is done."""

    @abstractmethod
    async def run(self) -> TurnReport:
        """Do the work.

        Ends with stop reason `cancelled` when `Agent.cancel` was called at any moment since the turn was begun. All
        events of the turn were taken by the sink before it returns. Raises `EngineError`.
        """
        ...


@runtime_checkable
class Agent(Protocol):
    """Sessions and their turns; lives as long as the connection."""

    @abstractmethod
    async def open_session(self, spec: SessionSpec, connect: Callable[[str], Peer]) -> OpenedSession:
        """Open a session; `connect` is handed its id and gives the client's side of it.

        Raises `SettingsError` where the settings do not load. An unusable discovery answer raises nothing.
        """
        ...

    @abstractmethod
    def begin_turn(self, session_id: str, prompt: Prompt) -> RunningTurn:
        """Accept a prompt, at once and without waiting, so that a cancel that follows finds it.

        Raises `UnknownSessionError`, or `SessionBusyError` where a turn is running.
        """
        ...

    @abstractmethod
    def cancel(self, session_id: str) -> None:
        """End the running turn as soon as possible; nothing happens where none runs or the session is unknown."""
        ...

    @abstractmethod
    def running_calls(self, session_id: str) -> tuple[RunningCall, ...]:
        """The calls that have not ended, oldest first (S2-28). Raises `UnknownSessionError`."""
        ...

    @abstractmethod
    def call_statistics(self, session_id: str) -> ToolStatistics:
        """How the session's calls went so far (S2-29). Raises `UnknownSessionError`."""
        ...

    @abstractmethod
    def cancel_calls(self, session_id: str, correlation_id: str) -> int:
        """Stop the call whose card has that id, or every call of the turn with that id, and go on with the turn.

        Says how many there were to stop; 0 for an unknown id (S2-27). Raises `UnknownSessionError`.
        """
        ...

    @abstractmethod
    def tools(self, session_id: str) -> ToolListing:
        """The session's tools, the disabled ones too (S2-11, S2-16). Raises `UnknownSessionError`."""
        ...

    @abstractmethod
    def set_tool_enabled(self, session_id: str, name: str, *, enabled: bool) -> ListedTool | None:
        """Switch a tool on or off from the next model request on (S2-17), and say how it stands now.

        None for a name that no tool has. What the settings disable stays off. Raises `UnknownSessionError`.
        """
        ...

    @abstractmethod
    async def set_mode(self, session_id: str, mode: Mode) -> None:
        """Decide in that mode from now on, in the middle of a turn too; the session's events say so.

        Raises `UnknownSessionError`.
        """
        ...

    @abstractmethod
    def tools_changed(self, session_id: str) -> None:
        """The client's tools changed: discovery is asked again soon, bursts merged. Unknown sessions are ignored."""
        ...

    @abstractmethod
    async def close_session(self, session_id: str) -> None:
        """Cancel what runs, release everything the session holds, forget it. Raises `UnknownSessionError`."""
        ...
