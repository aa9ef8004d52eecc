"""Sessions: where they outlive their process, and where their calls are counted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from attrs import frozen

from punie.domain.session.log import EngineSnapshot, LogEntry, SessionPage, SessionSummary
from punie.domain.session.turn import CallRecord, TurnRecord


@frozen
class SessionLease:
    """The right to add to a session's log; `token` grows with each taking, so that a late writer is told apart."""

    session_id: str
    token: int


@runtime_checkable
class SessionStore(Protocol):
    """Logs of sessions with an index of them; lives as long as the process, and many processes share what it keeps.

    Methods raise `SessionStoreError` where it cannot be used. Whatever process dies at whatever moment: what a method
    has confirmed stays, and no half of anything is ever read.
    """

    @abstractmethod
    async def acquire(self, session_id: str) -> SessionLease:
        """Become the session's only writer. Raises `SessionHeldError` where another process that lives is.

        That of a process of this machine that is gone is free at once; that of another machine, once it was not
        renewed for a minute.
        """
        ...

    @abstractmethod
    async def begin(self, session_id: str, entries: Sequence[LogEntry]) -> SessionLease:
        """Become a new session's only writer, and begin its log: both or neither. Raises as `acquire`."""
        ...

    @abstractmethod
    async def renew(self, lease: SessionLease) -> None:
        """Say that its holder lives. Raises `LeaseLostError`."""
        ...

    @abstractmethod
    async def release(self, lease: SessionLease) -> None:
        """Let others write; nothing happens where it was lost."""
        ...

    @abstractmethod
    async def append(self, lease: SessionLease, entries: Sequence[LogEntry], *, lasting: bool = False) -> None:
        """Add entries, all or none; one whose sequence is there already changes nothing.

        They survive the end of the process; with `lasting` also that of the machine's power. Raises `LeaseLostError`.
        """
        ...

    @abstractmethod
    async def take_in(self, lease: SessionLease, batches: Iterable[Sequence[LogEntry]]) -> None:
        """Make the log of a session that has none, for good: all of it, or none whatever happens meanwhile.

        The entries come in order, and a batch at a time is in memory; what takes them may be another thread. What the
        batches raise is raised. Others write in the meantime. Raises `LeaseLostError`.
        """
        ...

    @abstractmethod
    async def read(self, session_id: str, after: int = 0, limit: int = 500) -> Sequence[LogEntry]:
        """The entries with a sequence above `after`, in order, `limit` at most; empty at the end.

        What a newer version wrote and this one does not understand is left out.
        """
        ...

    @abstractmethod
    async def last_prompt(self, session_id: str) -> int:
        """The sequence of the last `PromptAccepted`; 0 where there is none."""
        ...

    @abstractmethod
    async def summary(self, session_id: str) -> SessionSummary | None:
        """The session as lists show it; None for an unknown one."""
        ...

    @abstractmethod
    async def sessions(self, cwd: str | None = None, cursor: str | None = None, limit: int = 50) -> SessionPage:
        """Sessions that have begun, latest change first, of one directory or all; an unusable cursor is a ValueError.

        What is lost of the index is made again from the logs.
        """
        ...

    @abstractmethod
    async def keep_snapshot(self, lease: SessionLease, snapshot: EngineSnapshot) -> None:
        """Keep an engine's memory in place of the one before. Raises `LeaseLostError`."""
        ...

    @abstractmethod
    async def snapshot(self, session_id: str) -> EngineSnapshot | None:
        """The last one kept."""
        ...

    @abstractmethod
    async def fork(self, session_id: str, lease: SessionLease) -> None:
        """Copy log and snapshot of a session into that of the lease, which is empty; later ones go their own ways."""
        ...

    @abstractmethod
    async def delete(self, session_id: str) -> bool:
        """Forget all of it; False for an unknown one. Raises `SessionHeldError` where another process holds it."""
        ...


@runtime_checkable
class UsageLedger(Protocol):
    """Keeps what was used; lives as long as the process and is shared by its sessions.

    Recording never raises and never holds a call up: what cannot be written is logged and lost. Records are kept in
    the order of recording; one of the same session and id replaces nothing and is kept once (idempotent).
    """

    @abstractmethod
    def record_call(self, record: CallRecord) -> None:
        """Write down a finished call, at once and without waiting."""
        ...

    @abstractmethod
    def record_turn(self, record: TurnRecord) -> None:
        """Write down a finished turn, at once and without waiting."""
        ...

    @abstractmethod
    async def calls(self, *, since: float = 0.0, session_id: str | None = None) -> Sequence[CallRecord]:
        """The calls that started at `since` (seconds since the epoch) or later, oldest first."""
        ...

    @abstractmethod
    async def turns(self, *, since: float = 0.0, session_id: str | None = None) -> Sequence[TurnRecord]:
        """The turns that started at `since` or later, oldest first."""
        ...
