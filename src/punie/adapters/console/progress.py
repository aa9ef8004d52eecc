"""A line on a terminal that says what is waited for, and goes away."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import TextIO

import anyio
from attrs import define, field

from punie.adapters.console.tally import short_title
from punie.domain.values.display import display_safe

SHOWN_AFTER_S = 2.0
"""A wait that is shorter needs no words."""

_STEP_S = 0.5
_CLEAR = "\r\x1b[K"


@define(eq=False)
class ProgressLine:
    """The present wait, on the last line of `notes`, a terminal; lives as long as a turn.

    Nothing is written where no person watches. `clock` gives seconds. `free` says whether the last line may be written
    to.
    """

    notes: TextIO
    watched: bool
    clock: Callable[[], float] = time.monotonic
    free: Callable[[], bool] = field(default=lambda: True)
    _running: dict[str, tuple[str, float]] = field(factory=dict, init=False)
    _waiting: str = field(default="waiting for the model,", init=False)
    _since: float = field(init=False)
    _shown: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._since = self.clock()

    def heard(self, *, thinks: bool = False) -> None:
        """Something arrived: the wait for the model begins again."""
        self.clear()
        self._since = self.clock()
        self._waiting = "the model is thinking," if thinks else "waiting for the model,"

    def begin(self, call_id: str, title: str) -> None:
        """A call runs from now on."""
        self._running[call_id] = (title, self.clock())

    def end(self, call_id: str) -> None:
        """The call is over."""
        self._running.pop(call_id, None)
        self.heard()

    def clear(self) -> None:
        """Take the line away, until it is shown again."""
        if self._shown:
            self.notes.write(_CLEAR)
            self.notes.flush()
            self._shown = False

    async def keep(self) -> None:
        """Show the line while there is a wait; until cancelled."""
        while self.watched:
            await anyio.sleep(_STEP_S)
            self.show()

    def show(self) -> None:
        """Write the line, where there is a wait and the last line of the terminal is free."""
        line = self.line()
        if line and self.free():
            # The cursor goes back to the first column: a line of the log is written over this one.
            self.notes.write(f"{_CLEAR}{line}\r")
            self.notes.flush()
            self._shown = True

    def line(self) -> str:
        """The present wait and its length, no wider than the terminal; empty before two seconds are over."""
        what, since = next(iter(self._running.values()), (self._waiting, self._since))
        waited = self.clock() - since
        if waited < SHOWN_AFTER_S:
            return ""
        more = f" and {len(self._running) - 1} more" if len(self._running) > 1 else ""
        tail = f"{more} {waited:.0f} s"
        room = max(10, shutil.get_terminal_size().columns - len(tail) - 2)
        return f"{short_title(display_safe(what), room)}{tail}"
