"""A text stream whose reader may leave at any moment (`punie ask ... | head`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from attrs import define, field


def _nothing() -> None:
    """Nobody wants to know."""


@define
class Pipe:
    """Writes at once, and goes quiet when the reader has left; `gone` is called once, then. Lives as long as a run."""

    stream: TextIO
    gone: Callable[[], None] = _nothing
    lost: bool = field(default=False, init=False)

    def write(self, text: str) -> None:
        """Write and flush; does nothing once the reader has left."""
        if self.lost:
            return
        try:
            self.stream.write(text)
            self.stream.flush()
        except (BrokenPipeError, ValueError):
            # ValueError is what Python raises for a stream that was closed on our side.
            self.lost = True
            self.gone()


def piped(stream: TextIO | Pipe) -> Pipe:
    """The stream as a `Pipe`; one that is a `Pipe` stays what it is."""
    return stream if isinstance(stream, Pipe) else Pipe(stream)
