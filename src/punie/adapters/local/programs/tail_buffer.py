"""The end of a long stream of bytes, in bounded memory."""

from __future__ import annotations

import codecs


class TailBuffer:
    """Keeps the last `limit_bytes` bytes of what is appended, and gives them as text; lives as long as its terminal."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = max(0, limit_bytes)
        self._kept = bytearray()
        self._size = 0

    @property
    def size(self) -> int:
        """How many bytes were appended so far."""
        return self._size

    @property
    def truncated(self) -> bool:
        """Whether the beginning was dropped."""
        return self._size > self._limit

    @property
    def unfinished(self) -> int:
        """How many bytes at the end begin a character that is not complete yet: 0 to 3."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        decoder.decode(bytes(self._kept[-3:]))
        return len(decoder.getstate()[0])

    def would_drop(self, more: int) -> bool:
        """Whether the beginning is dropped where so many more bytes are appended."""
        return self._size + more > self._limit

    def append(self, data: bytes) -> None:
        """Take the next bytes; what falls off the front is forgotten now and then, at most twice the limit is held."""
        self._kept += data
        self._size += len(data)
        if len(self._kept) > 2 * self._limit:
            del self._kept[: len(self._kept) - self._limit]

    def last(self, count: int) -> bytes | None:
        """The last `count` bytes; None where some of them are gone."""
        return bytes(self._kept[len(self._kept) - count :]) if count <= len(self._kept) else None

    def whole_characters(self) -> bytes:
        """The kept bytes, at most `limit_bytes`, starting at a whole character."""
        kept = bytes(self._kept[-self._limit :]) if self._limit else b""
        return kept[_start_of_character(kept) :] if self.truncated else kept

    def text(self, *, final: bool) -> str:
        """The kept bytes as UTF-8 text.

        Bytes that are no UTF-8 become U+FFFD. Unless `final`, a character of which only the first bytes arrived waits
        for the rest.
        """
        return codecs.getincrementaldecoder("utf-8")("replace").decode(self.whole_characters(), final)


def _start_of_character(data: bytes) -> int:
    """How many bytes at the front continue a character whose beginning was dropped: 0 to 3."""
    for index in range(min(3, len(data))):
        if data[index] & 0xC0 != 0x80:
            return index
    return min(3, len(data))
