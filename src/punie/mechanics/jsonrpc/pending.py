"""Requests of ours that the peer has still to answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from punie.mechanics.jsonrpc.errors import ConnectionClosed, RpcError

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable

    from msgspec import Raw

    from punie.mechanics.jsonrpc.envelope import RequestId

_MAX_LATE: Final = 1024


class PendingCall:
    """One request of ours, from before its line is written until its answer has been taken."""

    __slots__ = ("answered", "id", "on_late", "outcome")

    def __init__(self, call_id: int, on_late: Callable[[Raw], None] | None) -> None:
        self.id = call_id
        self.on_late = on_late
        self.answered = anyio.Event()
        self.outcome: Raw | Exception | None = None

    def settle(self, outcome: Raw | Exception) -> None:
        """Hand the outcome to the awaiting task."""
        self.outcome = outcome
        self.answered.set()


class PendingCalls:
    """The calls in flight by id, and the cancelled ones whose late answer somebody must still clean up after.

    Lives as long as its connection. Ids count upwards and are never used twice, so an answer to a forgotten call is
    told from an answer to no call at all without remembering either.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._next_id = 0
        self._calls: dict[int, PendingCall] = {}
        self._late: dict[int, Callable[[Raw], None]] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._calls)

    def open(self, on_late: Callable[[Raw], None] | None) -> PendingCall:
        """Register a call under a fresh id, at once. Raises ConnectionClosed when no answer can come any more."""
        if self._closed:
            raise ConnectionClosed("the connection to the peer is closed")
        call = PendingCall(self._next_id, on_late)
        self._next_id += 1
        self._calls[call.id] = call
        return call

    def forget(self, call: PendingCall) -> None:
        """Nothing waits for this call: its line was never written, or its answer does not matter."""
        self._calls.pop(call.id, None)

    def abandon(self, call: PendingCall) -> bool:
        """The awaiting task was cancelled. True when the peer is still at work and should be told to stop.

        An answer that came while the cancellation was on its way counts as late.
        """
        if self._calls.pop(call.id, None) is not None:
            if call.on_late is not None:
                self._late[call.id] = call.on_late
                if len(self._late) > _MAX_LATE:
                    self._late.pop(next(iter(self._late)))
                    self._log.warning("over %d cancelled requests were never answered: forgot the oldest", _MAX_LATE)
            return True
        if call.on_late is not None and call.outcome is not None and not isinstance(call.outcome, Exception):
            self._hand_over(call.on_late, call.outcome)
        return False

    def settle(self, call_id: RequestId | None, outcome: Raw | RpcError) -> None:
        """An answer has come. One that is not awaited is dropped with a log line."""
        call = self._calls.pop(call_id, None) if isinstance(call_id, int) else None
        if call is not None:
            call.settle(outcome)
        elif isinstance(call_id, int) and 0 <= call_id < self._next_id:
            on_late = self._late.pop(call_id, None)
            if on_late is not None and not isinstance(outcome, RpcError):
                self._hand_over(on_late, outcome)
            else:
                self._log.debug("dropped a late answer to request %d", call_id)
        elif call_id is None and isinstance(outcome, RpcError):
            self._log.warning("the peer reports an error outside any request: code %d", outcome.code)
        else:
            self._log.warning("dropped an answer to a request that was never sent")

    def close(self) -> None:
        """Fail every call in flight with ConnectionClosed, and every later `open`; idempotent."""
        self._closed = True
        self._late.clear()
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.settle(ConnectionClosed("the peer closed the connection before it answered"))

    def _hand_over(self, on_late: Callable[[Raw], None], result: Raw) -> None:
        try:
            on_late(result)
        except Exception:  # noqa: BLE001  the wire must outlive whatever a clean-up raises
            self._log.exception("cleaning up after a late answer failed")
