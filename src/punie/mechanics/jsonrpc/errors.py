"""The error vocabulary of JSON-RPC 2.0, as ACP uses it."""

from __future__ import annotations

from typing import Final

from attrs import define

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REQUEST_CANCELLED: Final = -32800


@define(eq=False)
class RpcError(Exception):
    """An error answer: raised by a handler to send one, and by `Connection.request` when the peer sent one.

    `code` is a JSON-RPC or ACP code, `message` one line for a person, `data` any JSON value or None for none.
    Never put the peer's own input into `message` or `data`.
    """

    code: int
    message: str
    data: object | None = None

    @property
    def words(self) -> str:
        """The cause for a person: `details` of the data, where SDKs put it below a message that says nothing."""
        match self.data:
            case {"details": str(details)} if details.strip():
                return details
            case _:
                return self.message

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class ConnectionClosed(Exception):  # noqa: N818  a state of the peer, not an error
    """The peer is gone: the request will not be answered, and no message reaches the peer any more."""
