"""The book of turns on DBOS: a turn is a workflow, and each of its steps is a step of the workflow.

The workflow runs nothing of the turn itself. It waits in a thread of its own for the next step to be reported, and
records it; the turn works where it always does, and waits for the record. So a workflow that is taken up again passes
over the recorded steps by itself, and engines and tools know nothing of DBOS.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.lowlevel import EventLoopToken, current_token
from attrs import define, field
from dbos import DBOS, SetWorkflowID
from dbos import error as dbos_error
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from punie.adapters.durable.orders import OPEN, JsonAlone, known_in, order_in, without_pickles, written
from punie.adapters.durable.place import Place, forget_the_old
from punie.domain.errors import SessionStoreError
from punie.domain.session.log import ProcessIdentity
from punie.domain.values.display import one_line
from punie.ports.machine import ProcessTable
from punie.ports.turns import KnownTurn, StepKind, TurnBook, TurnCalledOffError, TurnOrder, TurnSteps

VERSION: Final = "1"
"""The version of orders and steps, and of nothing else: DBOS leaves the workflows of another version alone."""

QUEUE: Final = "punie-"
"""The names of the queues begin so, one for each process; its identity follows."""

POLL_S: Final = 0.2
"""How often a process looks for a turn that it claims."""

TIDY_S: Final = 3600.0
CLAIM_LIMIT_S: Final = 15.0
BEGIN_LIMIT_S: Final = 60.0
STEP_LIMIT_S: Final = 20.0
SETTLED_S: Final = 0.01
CANCEL_TRIES: Final = 5
THREADS: Final = 16
"""Threads that wait for the database, beside those that other work of the process needs."""

LEFT: Final = "punie-left"
"""The queue of turns that their process left; none works it off, and every process claims from it."""

T = TypeVar("T")


class _LetGoError(BaseException):
    """The process lets go of a turn; DBOS records exceptions, and a turn that is let go of stays open."""


@define(eq=False)
class _Report:
    """A step on its way into the database; lives until it is there, which the event loop of `token` is told."""

    step: Mapping[str, str]
    done: anyio.Event = field(factory=anyio.Event)
    token: EventLoopToken = field(factory=current_token)

    def settle(self) -> None:
        """Called in the thread of the workflow."""
        with suppress(anyio.RunFinishedError):
            anyio.from_thread.run_sync(self.done.set, token=self.token)


@define(eq=False)
class _Hand(TurnSteps):
    """The steps of a turn; `work` is the workflow's thread. Lives as long as the process, `server`, has the turn."""

    turn_id: str
    server: str = ""
    threads: anyio.CapacityLimiter = field(factory=lambda: anyio.CapacityLimiter(THREADS))
    begun: threading.Event = field(factory=threading.Event)
    _reports: queue.SimpleQueue[_Report | None] = field(factory=queue.SimpleQueue)
    _report: _Report | None = None
    _over: threading.Event = field(factory=threading.Event)

    def work(self) -> str:
        """Record steps as they come, until the last one."""
        called_off = False
        self.begun.set()
        try:
            while True:
                step = DBOS.run_step({"name": "step"}, self._next)
                self._recorded()
                if step["kind"] == "end":
                    return step["name"]
        except dbos_error.DBOSWorkflowCancelledError:
            called_off = True  # the book names the turn until its end
            raise
        finally:  # also where another process has the turn
            self._over.set()
            if not called_off:
                self._forget()
            self._recorded()
            while not self._reports.empty():
                self._report = self._reports.get()
                self._recorded()

    def _next(self) -> Mapping[str, str]:
        self._report = self._reports.get()
        if self._report is None:
            raise _LetGoError
        return self._report.step

    def _recorded(self) -> None:
        report, self._report = self._report, None
        if report is not None:
            report.settle()

    async def took(self, kind: StepKind, name: str) -> None:
        await self._reported({"kind": kind.value, "name": one_line(name, 80)})

    async def ended(self, how: str) -> None:
        try:
            await self._reported({"kind": "end", "name": how})
            await self._in_thread(self._settled)
        except (TurnCalledOffError, SessionStoreError):
            return  # whoever looks at the turn next finds its end in the session's log
        finally:
            self._forget()

    def _settled(self) -> None:
        """Wait until the workflow is over in the database too, which follows its last step; a bounded time."""
        until_s = time.monotonic() + STEP_LIMIT_S
        while _rows(self.turn_id, *OPEN):
            if time.monotonic() > until_s:
                return
            time.sleep(SETTLED_S)

    async def hand_on(self) -> None:
        self.let_go()
        await self._in_thread(self._hand_on)

    def _hand_on(self) -> None:
        self._over.wait(STEP_LIMIT_S)
        with suppress(SessionStoreError), _as_ours():
            if any(row.executor_id == self.server for row in _rows(self.turn_id, *OPEN)):
                DBOS.resume_workflow(self.turn_id, queue_name=LEFT)

    def let_go(self) -> None:
        self._forget()
        self._reports.put(None)  # ends the thread; the turn stays open

    def void(self) -> None:
        """End the turn as soon as it is in the book, which no one waits for any more."""
        self._reports.put(_Report({"kind": "end", "name": "interrupted"}))

    def _forget(self) -> None:
        if _hands.get(self.turn_id) is self:
            del _hands[self.turn_id]

    async def _reported(self, step: Mapping[str, str]) -> None:
        report = _Report(step)
        self._reports.put(report)
        if not self._over.is_set():
            with anyio.move_on_after(STEP_LIMIT_S):
                await report.done.wait()
        if (self._over.is_set() and step["kind"] != "end") or not report.done.is_set():
            await self._in_thread(self._why)

    async def _in_thread(self, work: Callable[[], None]) -> None:
        await anyio.to_thread.run_sync(work, limiter=self.threads, abandon_on_cancel=True)

    def _why(self) -> None:
        """Raise why a step was not recorded."""
        if _rows(self.turn_id, "CANCELLED"):
            raise TurnCalledOffError
        raise SessionStoreError("the step of the turn was not recorded: another process has the turn, or none answers")


_hands: dict[str, _Hand] = {}
"""The turns of this process by their ids: DBOS is one for each process, and calls a function of a module."""


@DBOS.workflow(name="punie.turn")
def _turn(order: Mapping[str, Any]) -> str:
    hand = _hands.setdefault(order["turn_id"], _Hand(order["turn_id"]))
    return hand.work()


@define(eq=False)
class DbosTurnBook(TurnBook):
    """Turns as workflows, in PostgreSQL or in a file; lives as long as the process, of which it is the only one.

    Nothing is opened before the first use. `processes` tell which of them live: turns of a process of this machine that
    is gone are found at once, and those of another machine are left to the leases of their sessions.
    """

    place: Place
    processes: ProcessTable
    log: logging.Logger
    _opening: threading.Lock = field(factory=threading.Lock, init=False)
    _threads: anyio.CapacityLimiter = field(factory=lambda: anyio.CapacityLimiter(THREADS), init=False)
    _is_open: bool = field(default=False, init=False)
    _engine: Engine | None = field(default=None, init=False)
    _tidy_at_s: float = field(default=0.0, init=False)
    _late: set[str] = field(factory=set[str], init=False)
    """Turns that were claimed and came after the caller had given up; they are looked for again."""

    async def begin(self, order: TurnOrder) -> TurnSteps:
        hand = _hands[order.turn_id] = _Hand(order.turn_id, self._server, self._threads)

        def start() -> None:
            with SetWorkflowID(order.turn_id):
                DBOS.start_workflow(_turn, written(order))
            hand.begun.wait(CLAIM_LIMIT_S)  # one that is called off before it begins never does

        with anyio.move_on_after(BEGIN_LIMIT_S):
            try:
                await self._do(start, abandon=True)
            except SessionStoreError:
                _hands.pop(order.turn_id, None)
                raise
            except BaseException:
                hand.void()
                raise
            return hand
        raise SessionStoreError("the book of turns did not take the turn in time")

    async def claim(self, turn_id: str) -> TurnSteps | None:
        return await self._do(partial(self._claim, turn_id))

    async def open_elsewhere(self) -> Sequence[TurnOrder]:
        listed = await self._do(self._open_turns)
        orders = (order_in(each.input) for each in listed if self._is_elsewhere(each))
        return tuple(order for order in orders if order is not None)

    def _open_turns(self) -> Sequence[Any]:
        if time.monotonic() >= self._tidy_at_s:
            self._tidy_at_s = time.monotonic() + TIDY_S
            forget_the_old()
        return DBOS.list_workflows(status=list(OPEN), name="punie.turn", load_output=False)

    async def called_off(self) -> Sequence[str]:
        if not (mine := list(_hands)):
            return ()
        listed = partial(
            DBOS.list_workflows, workflow_ids=mine, status="CANCELLED", load_input=False, load_output=False
        )
        return tuple(each.workflow_id for each in await self._do(listed))

    async def known(self, limit: int = 50, prefix: str = "") -> Sequence[KnownTurn]:
        latest = partial(
            DBOS.list_workflows, name="punie.turn", limit=limit, sort_desc=True, workflow_id_prefix=prefix or None
        )
        listed = await self._do(latest)
        return tuple(known for known in map(known_in, listed) if known is not None)

    async def cancel(self, turn_id: str) -> bool:
        def cancel() -> bool:
            tries = 0
            while tries < CANCEL_TRIES and _rows(turn_id, *OPEN):
                tries += 1
                DBOS.cancel_workflow(turn_id)
                time.sleep(POLL_S)  # a process that takes the turn up at this moment makes it an open one again
            return tries > 0

        return await self._do(cancel)

    async def aclose(self) -> None:
        if self._is_open:
            self._is_open = False
            for hand in tuple(_hands.values()):
                hand.let_go()
            await anyio.to_thread.run_sync(self._close)

    def _claim(self, turn_id: str) -> TurnSteps | None:
        if not _rows(turn_id, *OPEN):
            return None
        hand = _hands.get(turn_id)  # that of an earlier try, which took too long
        if hand is None:
            hand = _hands[turn_id] = _Hand(turn_id, self._server, self._threads)
            DBOS.resume_workflow(turn_id, queue_name=self._queue)
        if hand.begun.wait(CLAIM_LIMIT_S):
            self._late.discard(turn_id)
            return hand
        self._late.add(turn_id)
        raise SessionStoreError("the turn was not handed over in time")

    def _is_elsewhere(self, status: Any) -> bool:
        """Whether no turn of this process, nor one of a process that is known to live, has that workflow."""
        if status.workflow_id in _hands:
            return status.workflow_id in self._late
        if status.queue_name == LEFT and status.status == "ENQUEUED":
            return True
        process = _process_in(status.executor_id or "")
        return process is None or self.processes.lives(process) is not True

    @property
    def _server(self) -> str:
        own = self.processes.own()
        return f"{own.machine}|{own.pid}|{own.started}"

    @property
    def _queue(self) -> str:
        return f"{QUEUE}{self._server}"

    async def _do(self, work: Callable[[], T], *, abandon: bool = False) -> T:
        """The result of `work` in a thread, with the database open. Raises `SessionStoreError`."""

        def done() -> T:
            with _as_ours():
                self._open()
                return work()

        return await anyio.to_thread.run_sync(done, limiter=self._threads, abandon_on_cancel=abandon)

    def _open(self) -> None:
        with self._opening:
            if self._is_open:
                return
            without_pickles()
            place = self.place.config()
            self._engine = place.get("system_database_engine")
            # LISTEN needs a connection of its own, and no pooler by transaction; nothing here waits for a message.
            DBOS(
                config={
                    **place,
                    "executor_id": self._server,
                    "application_version": VERSION,
                    "use_listen_notify": False,
                    "log_level": "CRITICAL",
                    "serializer": JsonAlone(),
                }
            )
            began_s = time.monotonic()
            try:
                DBOS.listen_queues([self._queue])
                DBOS.launch()
                self._forget_the_dead()
                DBOS.register_queue(self._queue, polling_interval_sec=POLL_S)
            except BaseException:
                self._destroy()  # what is half open cannot be opened again
                raise
            self._is_open = True
            self.log.info("turns: the book is open after %.2f s", time.monotonic() - began_s)

    def _forget_the_dead(self) -> None:
        """Delete the queues of processes that are gone: each had its own, and every process reads all of them."""
        for row in DBOS.list_queues():
            process = _process_in(row.name.removeprefix(QUEUE))
            if row.name.startswith(QUEUE) and process is not None and self.processes.lives(process) is False:
                DBOS.delete_queue(row.name)

    def _close(self) -> None:
        with suppress(SQLAlchemyError):
            DBOS.delete_queue(self._queue)
        self._destroy()

    def _destroy(self) -> None:
        DBOS.destroy()
        if self._engine is not None:
            self._engine.dispose()


@contextmanager
def _as_ours() -> Iterator[None]:
    """Raise what the library and the database raise as `SessionStoreError`."""
    try:
        yield
    except (SQLAlchemyError, dbos_error.DBOSException, OSError) as error:
        why = f"the book of turns cannot be used: {one_line(str(error), 200)}"
        raise SessionStoreError(why, "See that its database is there and can be written to") from error


def _rows(turn_id: str, *states: str) -> Sequence[Any]:
    """The row of that turn, where it is in one of those states; blocks. Raises `SessionStoreError`."""
    with _as_ours():
        return DBOS.list_workflows(workflow_ids=[turn_id], status=list(states), load_input=False)


def _process_in(server: str) -> ProcessIdentity | None:
    machine, _, rest = server.partition("|")
    pid, _, started = rest.partition("|")
    return ProcessIdentity(machine, int(pid), started) if pid.isdigit() else None
