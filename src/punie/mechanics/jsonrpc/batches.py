"""Batches: several messages in one array, and one array of answers (JSON-RPC 2.0, section 6)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from punie.mechanics.jsonrpc.encoding import is_utf8, mend_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from punie.mechanics.jsonrpc.outbox import Outbox

MAX_BATCH: Final = 1_000
_HELD_BYTES: Final = 2**20


def decode_batch(line: bytes | bytearray) -> Iterator[bytes]:
    """The entries of a batch, undecoded; nothing for any other line, and for an array of none or over `MAX_BATCH`."""
    if not is_utf8(line):
        return
    try:
        batch = _batch_decoder()(mend_surrogates(line) or line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    for entry in msgspec.structs.astuple(batch):
        if not memoryview(entry):
            return
        yield bytes(entry)


@cache
def _batch_decoder() -> Callable[[bytes | bytearray], msgspec.Struct]:
    """Decodes an array of bounded length. A list would be made whole before its length was looked at."""
    entries = [(f"entry_{place}", Raw, Raw()) for place in range(MAX_BATCH)]
    kind = msgspec.defstruct("_Batch", entries, array_like=True, forbid_unknown_fields=True, gc=False)
    return msgspec.json.Decoder(kind).decode


class BatchAnswers:
    """The answers to one batch, put as one array with the last of them.

    Lives until then. `owed` counts the requests in flight, and the batch itself until all its entries were taken. Where
    the answers that are held for all batches of the peer exceed 1 MiB, those of this batch go out before the last, so
    that a request without an end costs bounded memory.
    """

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._answers: list[bytes] = []
        self._bytes = 0
        self.owed = 1

    def put(self, line: bytes) -> None:
        """Hold one answer, a whole line with its newline."""
        self._answers.append(line[:-1])
        self._bytes += len(line)
        self._outbox.held_bytes += len(line)
        if self._outbox.held_bytes > _HELD_BYTES:
            self._send()

    def settle(self) -> None:
        """One of those that were owed is done; nothing is put where the batch wanted no answer."""
        self.owed -= 1
        if not self.owed:
            self._send()

    def _send(self) -> None:
        if self._answers:
            self._outbox.put(b"[%b]\n" % b",".join(self._answers), answer=True)
            self._outbox.held_bytes -= self._bytes
            self._answers, self._bytes = [], 0
