"""All that a program prints, in a file, once its terminal cannot hold it any more."""

from __future__ import annotations

import codecs

from punie.adapters.local.files.output_store import TEXT_LIMIT_BYTES, KeptFile
from punie.adapters.local.programs.tail_buffer import TailBuffer
from punie.domain.values.terminal import OUTPUT_LIMIT_BYTES, KeptOutput

HEAD_LIMIT_BYTES = TEXT_LIMIT_BYTES - OUTPUT_LIMIT_BYTES
"""What is written while the program runs; what comes after that is in its terminal's tail, or is left out."""


class Spool:
    """Writes one program's output as UTF-8 text: its head as it comes, its tail at its end.

    Lives as long as its terminal; the file stays in its store. A program that prints no more than its terminal holds
    makes no file. `add` is quick; `flush` and `finish` block, one at a time and never beside an `add`.
    """

    def __init__(self, tail: TailBuffer, file: KeptFile) -> None:
        """Nothing is written yet; `tail` is what the terminal itself keeps."""
        self._tail = tail
        self._file = file
        self._pending = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._taken = 0
        self._written = (0, 0)  # bytes of text in the file's head, and of the output that they stand for
        self._left_out: int | None = None
        self._full = False
        self._lost = False

    @property
    def waiting(self) -> bool:
        """Whether there is something to flush."""
        return bool(self._pending)

    @property
    def begun(self) -> bool:
        """Whether the output was too much for the terminal."""
        return bool(self._taken)

    def add(self, data: bytes) -> None:
        """Take the next bytes, before the tail takes them."""
        self._full = self._full or self._written[0] + len(self._pending) >= HEAD_LIMIT_BYTES
        if self._full or self._lost:
            return
        if not self._taken:
            if not self._tail.would_drop(len(data)):
                return
            self._pending += self._tail.last(self._tail.size) or b""
        self._pending += data
        self._taken = self._tail.size + len(data)

    def flush(self) -> None:
        """Write what was added."""
        data, self._pending = bytes(self._pending), bytearray()
        if not data or self._lost:
            return
        self._write(self._decoder.decode(data))
        if not self._lost:
            self._written = (self._file.size, self._taken - len(self._decoder.getstate()[0]))

    def finish(self) -> None:
        """The program ended, and its last bytes were added: write the tail where the head is not all of it."""
        self.flush()
        if self._taken and not self._lost:
            self._end()
        self._file.close()

    def kept(self, text: str, *, final: bool) -> KeptOutput | None:
        """Where the whole is that `text` is the end of; None where there is no file, or none any more."""
        head, stands_for = self._written
        if not head or self._lost or not self._file.is_kept:
            return None
        missing = self._tail.size - stands_for
        before = head + missing - (0 if final else self._tail.unfinished) - len(text.encode())
        left_out = self._left_out
        if left_out is None:
            left_out = missing if self._full else 0
        return KeptOutput(self._file.path, max(0, before), left_out)

    def _end(self) -> None:
        rest = self._tail.last(self._tail.size - self._taken)
        if rest is not None:
            self._write(self._decoder.decode(rest, final=True))
            self._left_out = 0
            if not self._lost:
                self._written = (self._file.size, self._tail.size)
            return
        kept = self._tail.whole_characters()
        self._left_out = self._tail.size - self._written[1] - len(kept)
        self._write(f"\n[... {self._left_out} bytes left out here ...]\n{kept.decode('utf-8', 'replace')}")

    def _write(self, text: str) -> None:
        try:
            self._file.write(text.encode())
        except OSError:  # no room, or the store let go of it: the terminal's tail is all there is
            self._lost = True
            self._file.discard()
