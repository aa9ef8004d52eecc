"""Bytes in, lines out, with a bound on each line: the framing of MCP over stdio."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import frozen

LINE_LIMIT_BYTES: Final = 16 * 1024 * 1024
"""No single message may be longer; a longer one fails the request that it answers, and costs no more memory."""

_EDGE_BYTES: Final = 512


@frozen
class Oversized:
    """A line over the limit: its bytes were dropped as they came, but for both its ends, where its id may stand."""

    size_bytes: int
    head: bytes
    tail: bytes


class BoundedLines:
    """Cuts chunks into lines without their newlines; lives as long as the stream. The cost is linear in the bytes."""

    def __init__(self, limit_bytes: int = LINE_LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._line = bytearray()
        self._head = b""
        self._dropped = 0  # bytes of the line that is being dropped; 0 where none is

    @property
    def dropped_bytes(self) -> int:
        """The size so far of the line that is being dropped; 0 where none is."""
        return self._dropped

    def feed(self, chunk: bytes) -> Iterator[bytes | Oversized]:
        """The lines that the next bytes of the stream complete."""
        first, *more = chunk.split(b"\n")
        self._grow(first)
        for piece in more:
            yield self._finished()
            self._grow(piece)

    def _grow(self, piece: bytes) -> None:
        if self._dropped:
            self._dropped += len(piece)
            self._line = (self._line + piece[-_EDGE_BYTES:])[-_EDGE_BYTES:]
            return
        self._line += piece
        if len(self._line) > self._limit:
            self._dropped = len(self._line)
            self._head = bytes(self._line[:_EDGE_BYTES])
            self._line = self._line[-_EDGE_BYTES:]

    def _finished(self) -> bytes | Oversized:
        line, self._line = bytes(self._line), bytearray()
        if not self._dropped:
            return line
        size, self._dropped = self._dropped, 0
        return Oversized(size, self._head, line)
