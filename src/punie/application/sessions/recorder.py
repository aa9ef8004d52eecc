"""Between a session's desk and its client: writes down what passes, so that another process can go on with it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, TypeAlias

import anyio
from attrs import define, field, frozen

from punie.application.sessions.notices import Warn, unheard
from punie.domain.errors import LeaseLostError, SessionStoreError
from punie.domain.model.choice import Effort
from punie.domain.model.compaction import CompactionStatus
from punie.domain.session.events import (
    CallFinished,
    CompactionChanged,
    ContextUsed,
    HistoryForgotten,
    ModeChanged,
    ModelChanged,
    PermissionAnswered,
    PermissionAsked,
    PlanChanged,
    RequestEnded,
    SessionEvent,
    TextDelta,
    ThoughtDelta,
    TitleChanged,
    ToolCallAnnounced,
    ToolCallUpdated,
    TurnEnded,
    UsageChanged,
)
from punie.domain.session.log import EngineSnapshot, LogEntry, LoggedEvent, PromptAccepted, PromptFilled, title_of
from punie.domain.session.recovery import LastTurn
from punie.domain.session.transcript import TranscriptBuilder
from punie.domain.session.turn import StopReason
from punie.domain.session.turn_progress import TurnProgress
from punie.domain.tools.execution import CallStatus
from punie.domain.tools.tool import ToolKind
from punie.domain.values.content import Prompt
from punie.domain.values.display import one_line
from punie.ports.engine import EventSink
from punie.ports.machine import Clock
from punie.ports.sessions import SessionLease, SessionStore

WRITE_LIMIT_S = 10.0
"""How long a disk may take; then the session cannot be kept, and says so."""

GATHER_S = 0.25
"""How long what was not to be lasting at once may wait, so that many events are one transaction."""

WAITING_LIMIT = 1_000
"""Entries that may wait; whoever adds one beyond them waits for the disk."""

PIECES_CHARS = 8_192
"""Pieces of one message are one entry, up to this."""

RENEW_S = 20.0

TELL_LIMIT_S = 1.0
"""How long a slow client may hold up the end of a turn with the session's title."""

HARMLESS = frozenset({ToolKind.READ, ToolKind.SEARCH, ToolKind.THINK})
"""A call of any other kind may have an effect: that it began is on the disk before it begins."""


Watch: TypeAlias = Callable[[float, LoggedEvent | SessionEvent], None]
"""Hears of every event and of the prompts, with the time; it neither waits nor raises (telemetry)."""

AS_IT_IS = (
    ToolCallAnnounced,
    ToolCallUpdated,
    CallFinished,
    PermissionAsked,
    PermissionAnswered,
    RequestEnded,
    ModeChanged,
    ModelChanged,
    TitleChanged,
    PlanChanged,
    CompactionChanged,
    HistoryForgotten,
)
"""What is written down just as it comes, each as an entry of its own."""


@frozen
class KeptSession:
    """A session's place in the store, the sequence its next entry has, and how full its model's context was."""

    store: SessionStore
    lease: SessionLease
    next_sequence: int = 1
    titled: bool = False
    context: ContextUsed | None = None

    async def let_go(self) -> None:
        """Let others have the session, in bounded time; where that fails its lease runs out by itself."""
        with anyio.move_on_after(WRITE_LIMIT_S, shield=True), contextlib.suppress(SessionStoreError):
            await self.store.release(self.lease)


@frozen
class Cut:
    """A moment in a session: what passed before it is stored below `stored_before`, and the rest is in `waiting`."""

    stored_before: int
    waiting: tuple[LogEntry, ...]


@define(eq=False)
class SessionRecorder(EventSink):
    """An async context manager that lives as long as its session; leaving writes what waits.

    With `kept` None it only hands on, and remembers in `so_far` what was said. What cannot be written is raised to
    whoever needs it to be: the prompt, the call that is about to start; everything else waits for the next try.
    """

    lane: EventSink
    clock: Clock
    log: logging.Logger
    kept: KeptSession | None = None
    warn: Warn = unheard
    watch: Watch | None = None
    so_far: TranscriptBuilder = field(factory=TranscriptBuilder, init=False)
    progress: TurnProgress = field(factory=TurnProgress, init=False)
    _sequence: int = field(default=1, init=False)
    _waiting: list[LogEntry] = field(factory=list[LogEntry], init=False)
    _piece: TextDelta | ThoughtDelta | None = field(default=None, init=False)
    _pieces: list[str] = field(factory=list[str], init=False)
    _size: int = field(default=0, init=False)
    _usage: UsageChanged | None = field(default=None, init=False)
    _context: ContextUsed | None = field(default=None, init=False)
    _says_context: bool = field(default=False, init=False)
    _harmless: set[str] = field(factory=set[str], init=False)
    _turn: LastTurn = field(factory=LastTurn, init=False)
    _trouble: str = field(default="", init=False)
    _titled: bool = field(default=False, init=False)
    _title: str | None = field(default=None, init=False)
    _writing: anyio.Lock = field(factory=anyio.Lock, init=False)
    _news: anyio.Event = field(factory=anyio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        if self.kept is not None:
            self._sequence, self._titled = self.kept.next_sequence, self.kept.titled
            self._context = self.kept.context

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.flush()

    async def flush(self) -> None:
        """Write what waits, as far as that works."""
        with anyio.CancelScope(shield=True):
            self._close_message()
            await self._try_to_write("what was left of it", lasting=False)

    @property
    def unwritten(self) -> bool:
        """Whether something waits to be written."""
        return bool(self._waiting)

    async def prompt(
        self, turn_id: str, prompt: Prompt, model: str | None = None, effort: Effort | None = None
    ) -> None:
        """A turn begins. It is on the disk when this returns; raises `SessionStoreError` or `LeaseLostError`.

        While what came before cannot be written it does not begin, so that what waits does not grow with each try.
        """
        accepted = PromptAccepted(turn_id, prompt, model, effort)
        self.progress.begin(turn_id)
        if self.watch is not None:
            self.watch(self.clock.epoch_s(), accepted)
        if self.kept is None:
            self.so_far.take(accepted)
            return
        if self._waiting:
            await self._write(lasting=False)
        self._put(accepted)
        await self._write(lasting=True)
        if not self._titled:
            self._title = title_of(prompt)

    def filled(self, prompt: Prompt) -> None:
        """The model gets that in place of what was typed; it is on the disk before anything has an effect."""
        event = PromptFilled(prompt)
        if self.kept is None:
            self.so_far.take(event)
        else:
            self._put(event)

    async def remember(self, engine: str, state: bytes | None) -> None:
        """In mid-turn, `state` is the engine's memory of all that came until now. Never raises, as `end_turn`."""
        if self.kept is not None and state is not None and self._turn.running:
            self._close_message()
            snapshot = EngineSnapshot(engine, self._sequence - 1, state)
            await self._try_to_write("a summary", lasting=True, snapshot=snapshot)

    async def end_turn(
        self, reason: StopReason | None, engine: str, state: bytes | None, failure: str | None = None
    ) -> None:
        """The turn is over, and `state` is the engine's memory of it. Never raises: the next turn tries again.

        A call whose end a slow client held up ends here, and a turn that never began does not end.
        """
        if self.kept is None:
            self.so_far.take(TurnEnded(reason))
        if self.kept is None or not self._turn.running:
            return
        for event in self._turn.calls_owed():
            self._put(event)
        if self._usage is not None:
            self._put(self._usage)
            self._usage = None
        if self._context is not None and not self._says_context:
            self._put(self._context)
        self._says_context = False
        self._put(TurnEnded(reason, failure))
        self._harmless.clear()
        snapshot = None if state is None else EngineSnapshot(engine, self._sequence - 1, state)
        with anyio.CancelScope(shield=True):
            await self._try_to_write("the end of a turn", lasting=True, snapshot=snapshot)
        title, self._title = self._title, None
        if title is not None:
            self._titled = True
            with anyio.move_on_after(TELL_LIMIT_S, shield=True):
                await self.lane.emit(TitleChanged(title))

    def cut(self, lane: EventSink) -> Cut:
        """Let events go to another listener: each one either passed before this moment or goes there, never both."""
        self._close_message()
        self.lane = lane
        return Cut(self._waiting[0].sequence if self._waiting else self._sequence, tuple(self._waiting))

    async def emit(self, event: SessionEvent) -> None:
        lane = self.lane  # whoever listens when it is written down is who hears of it
        self.progress.take(event)
        if self.watch is not None:
            self.watch(self.clock.epoch_s(), event)
        if self.kept is None:
            self.so_far.take(event)
            await lane.emit(event)
            return
        self._take(event)
        await self._hand_over(event)
        await lane.emit(event)

    async def keep(self) -> None:
        """Write what waits a moment after it came, and say now and then that this process lives; until cancelled."""
        while self.kept is not None:
            with anyio.move_on_after(RENEW_S):
                await self._news.wait()
                await anyio.sleep(GATHER_S)
            self._news = anyio.Event()
            self._close_message()
            if self._waiting:
                await self._try_to_write("a part of a turn", lasting=False)
            elif not await self._renewed(self.kept):
                return

    # ------------------------------------------------------------ gathering

    def _take(self, event: SessionEvent) -> None:
        match event:
            case TextDelta() | ThoughtDelta():
                self._add_piece(event)
            case UsageChanged():
                self._usage = event
            case ContextUsed():
                self._context, self._says_context = event, True
                self._put(event)
            case ToolCallUpdated(status=None):
                pass  # what a running call shows so far: its end shows the whole
            case _ if isinstance(event, AS_IT_IS) and not _was_only_tried(event):
                self._put(event)
            case _:
                pass

    def _put(self, event: LoggedEvent) -> None:
        self._close_message()
        self._number(event)

    def _number(self, event: LoggedEvent) -> None:
        self._waiting.append(LogEntry(self._sequence, self.clock.epoch_s(), event))
        self._turn.take(event)
        self._sequence += 1
        self._news.set()

    def _add_piece(self, event: TextDelta | ThoughtDelta) -> None:
        last = self._piece
        if type(last) is not type(event) or (last is not None and last.message_id != event.message_id):
            self._close_message()
        self._piece = event
        self._pieces.append(event.text)
        self._size += len(event.text)
        self._news.set()
        if self._size > PIECES_CHARS:
            self._close_message()

    def _close_message(self) -> None:
        piece, self._piece = self._piece, None
        if piece is not None:
            text = "".join(self._pieces)
            self._pieces, self._size = [], 0
            self._number(type(piece)(text, piece.message_id))

    def _begins_an_effect(self, event: SessionEvent) -> bool:
        if isinstance(event, ToolCallAnnounced) and event.kind in HARMLESS:
            self._harmless.add(event.call_id)
        if not isinstance(event, ToolCallUpdated) or event.status is not CallStatus.IN_PROGRESS:
            return False
        return event.call_id not in self._harmless

    # ------------------------------------------------------------ writing

    async def _hand_over(self, event: SessionEvent) -> None:
        """Write what cannot wait, before the client hears of it. Raises `SessionStoreError` or `LeaseLostError`."""
        if self._begins_an_effect(event):
            await self._write(lasting=True)
        elif isinstance(event, ModeChanged):  # a stricter mode that was confirmed stays, whatever happens
            await self._try_to_write("a change of mode", lasting=True)
        elif len(self._waiting) > WAITING_LIMIT and not _ends_a_call(event):
            await self._write(lasting=False)

    async def _try_to_write(self, what: str, *, lasting: bool, snapshot: EngineSnapshot | None = None) -> None:
        try:
            await self._write(lasting=lasting, snapshot=snapshot)
        except (SessionStoreError, LeaseLostError) as error:
            trouble = one_line(str(error), 300)
            if trouble != self._trouble:  # once, for it is tried again and again
                self._trouble = trouble
                self.log.warning("a session's log: %s was not written: %s", what, trouble)
                self.warn("This session is not being saved", f"{trouble} It is tried again and again.")
        else:
            self._trouble = ""

    async def _write(self, *, lasting: bool, snapshot: EngineSnapshot | None = None) -> None:
        """Hand all that waits to the store, in order; it stays where that fails, and is handed over again."""
        kept = self.kept
        if kept is None:
            return
        with anyio.move_on_after(WRITE_LIMIT_S, shield=True) as bound:
            async with self._writing:
                batch: Sequence[LogEntry] = tuple(self._waiting)
                if batch:
                    await kept.store.append(kept.lease, batch, lasting=lasting)
                    del self._waiting[: len(batch)]
                if snapshot is not None:
                    await kept.store.keep_snapshot(kept.lease, snapshot)
        if bound.cancelled_caught:
            raise SessionStoreError(f"the disk did not take it within {WRITE_LIMIT_S:g} s")

    async def _renewed(self, kept: KeptSession) -> bool:
        try:
            await kept.store.renew(kept.lease)
        except LeaseLostError as error:
            self.log.warning("session %s: %s", kept.lease.session_id, error)
            return False
        except SessionStoreError as error:
            self.log.info("session %s: its lease was not renewed: %s", kept.lease.session_id, error)
        return True


def _ends_a_call(event: SessionEvent) -> bool:
    """Such an event is taken whatever the disk does: there is one for each call that was let start."""
    match event:
        case CallFinished():
            return True
        case ToolCallUpdated(_, status):
            return status is not None and status.terminal
        case _:
            return False


def _was_only_tried(event: LoggedEvent) -> bool:
    """Whether it is a compaction of which nothing came yet: that is no part of the session's story."""
    return isinstance(event, CompactionChanged) and event.status is not CompactionStatus.COMPLETED
