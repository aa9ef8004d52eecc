"""When a turn's requests to its model began and ended, told from outside of its engine.

An engine lists the tools before each request and says what each one used (ports/engine.py): between the two lies the
request, whichever library made it. So no engine has to measure itself, and none can forget to.
"""

from __future__ import annotations

from attrs import define, field

from punie.domain.model.usage import Usage
from punie.domain.session.events import RequestEnded, RequestEnding
from punie.ports.machine import Clock


@define
class RequestWatch:
    """Lives as long as its turn; `model` is who is asked."""

    clock: Clock
    model: str = ""
    _began_s: float = field(init=False)
    _first_s: float | None = field(default=None, init=False)
    _open: bool = field(default=False, init=False)
    _counted: Usage = field(factory=Usage, init=False)

    def __attrs_post_init__(self) -> None:
        self._began_s = self.clock.monotonic_s()

    def begin(self) -> None:
        """The tools were listed: a request is about to be made."""
        self.interrupt()
        self._open = True

    def interrupt(self) -> None:
        """A call begins or ends: a request that follows begins after that, and none was under way."""
        self._began_s, self._first_s, self._open = self.clock.monotonic_s(), None, False

    def piece(self) -> None:
        """The next piece of the answer came."""
        if self._first_s is None:
            self._first_s = self.clock.monotonic_s() - self._began_s
            self._open = True

    def counted(self, totals: Usage) -> RequestEnded | None:
        """The turn's totals so far; None where no request was added to them."""
        own = _added(self._counted, totals)
        if own.requests <= 0 and (totals.requests or own.input_tokens + own.output_tokens <= 0):
            return None
        self._counted = totals
        return self._ended(own, RequestEnding.DONE)

    def stopped(self, ending: RequestEnding) -> RequestEnded | None:
        """The turn stopped short; None where no request was under way."""
        return self._ended(Usage(), ending) if self._open else None

    def _ended(self, used: Usage, ending: RequestEnding) -> RequestEnded:
        ended = RequestEnded(self.model, self.clock.monotonic_s() - self._began_s, used, self._first_s, ending)
        self.interrupt()
        return ended


def _added(before: Usage, now: Usage) -> Usage:
    cost = None if now.cost_usd is None else now.cost_usd - (before.cost_usd or 0.0)
    return Usage(
        max(0, now.input_tokens - before.input_tokens),
        max(0, now.output_tokens - before.output_tokens),
        max(0, now.cached_read_tokens - before.cached_read_tokens),
        max(0, now.cached_write_tokens - before.cached_write_tokens),
        max(0, now.requests - before.requests),
        None if cost is None else max(0.0, cost),
    )
