"""The end of a long stream of bytes, in bounded memory."""

from __future__ import annotations

import codecs


class TailBuffer:
    """Keeps the last `limit_bytes` bytes of what is appended, and gives them as text; lives as long as its terminal."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = max(0, limit_bytes)
        self._kept = bytearray()
        self._dropped = False

    @property
    def truncated(self) -> bool:
        """Whether the beginning was dropped."""
        return self._dropped or len(self._kept) > self._limit

    def append(self, data: bytes) -> None:
        """Take the next bytes; what falls off the front is forgotten now and then, at most twice the limit is held."""
        self._kept += data
        if len(self._kept) > 2 * self._limit:
            self._dropped = True
            del self._kept[: len(self._kept) - self._limit]

    def text(self, *, final: bool) -> str:
        """The kept bytes as UTF-8 text of at most `limit_bytes` bytes, starting at a whole character.

        Bytes that are no UTF-8 become U+FFFD. Unless `final`, a character of which only the first bytes arrived waits
        for the rest.
        """
        kept = bytes(self._kept[-self._limit :]) if self._limit else b""
        if self.truncated:
            kept = kept[_start_of_character(kept) :]
        return codecs.getincrementaldecoder("utf-8")("replace").decode(kept, final)


def _start_of_character(data: bytes) -> int:
    """How many bytes at the front continue a character whose beginning was dropped: 0 to 3."""
    for index in range(min(3, len(data))):
        if data[index] & 0xC0 != 0x80:
            return index
    return min(3, len(data))
