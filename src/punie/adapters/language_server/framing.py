"""The framing of the Language Server Protocol over the pipes of a program: a header with a length before each message.

JSON-RPC on the connection is that of `mechanics/jsonrpc`, which writes a message as one line.
"""

from __future__ import annotations

from punie.mechanics.jsonrpc.connection import Transport
from punie.mechanics.piped_process import PipedProcess

MESSAGE_LIMIT_BYTES = 64 * 2**20
"""A server that sends a larger message is ended."""

_HEADER_LIMIT_BYTES = 4_096


class FramedPipes(Transport):
    """The messages of one program; lives as long as it. A header that cannot be read ends the connection."""

    def __init__(self, process: PipedProcess) -> None:
        self._process = process
        self._buffer = bytearray()

    async def receive(self) -> bytes | bytearray | None:
        """The next message; None at the end. Raises `OSError` where it has no sound header."""
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _HEADER_LIMIT_BYTES:
                raise OSError("the language server sent no header")
            if not await self._more():
                return None
        length = _length(bytes(self._buffer[:end]))
        del self._buffer[: end + 4]
        while len(self._buffer) < length:
            if not await self._more():
                return None
        body = self._buffer[:length]
        del self._buffer[:length]
        return body

    async def send(self, data: bytes) -> None:
        """Write all of `data`: lines, of which each is one message."""
        framed = bytearray()
        for line in data.splitlines():
            framed += b"Content-Length: %d\r\n\r\n%b" % (len(line), line)
        await self._process.write(bytes(framed))

    async def _more(self) -> bool:
        chunk = await self._process.read()
        self._buffer += chunk
        return bool(chunk)


def _length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            length = int(value)
            if length <= MESSAGE_LIMIT_BYTES:
                return length
    raise OSError("the language server sent a message without a length, or one that is too long")
