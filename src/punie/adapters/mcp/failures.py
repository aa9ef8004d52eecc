"""What breaks between us and a server, in words that follow "the server ..."."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST

from punie.adapters.mcp.attempt import LinkError
from punie.adapters.mcp.messages import UNREADABLE

IN_WORDS: Final = -(2**40)
"""Our own code for a failure whose message is all there is to say; MCP's codes have 32 bits."""

_LIMIT: Final = 600
_FORGOTTEN: Final = (INVALID_REQUEST, "Session terminated")
"""How the library says that an address knows our session no longer, as after a restart there."""


def in_words(error: BaseException) -> str:
    """Why a connection could not be made, or broke: the first plain error of a group says it."""
    first = next(_plain(error), error)
    match first:
        case FileNotFoundError():
            return "cannot be started: there is no such program or folder. Check its command, its cwd and PATH"
        case PermissionError():
            return "cannot be started: its command is no executable file, or access is denied"
        case MCPError():
            return _protocol_words(first)
        case OSError():
            return f"cannot be started or reached: {first.strerror or first}"
        case _:
            text = str(first) or type(first).__name__
            return f"cannot be used: {_short(text)}"


def as_link_error(error: Exception) -> LinkError:
    """What became of one request."""
    if isinstance(error, MCPError):
        over = error.code == CONNECTION_CLOSED or (error.code, error.message) == _FORGOTTEN
        return LinkError(_protocol_words(error), lost=over, code=error.code)
    if isinstance(error, ValueError):
        return LinkError("answered with what the protocol does not allow")
    if isinstance(error, RuntimeError):
        return LinkError(f"cannot be used: {_short(str(error))}")
    return LinkError("closed the connection", lost=True)


def _protocol_words(error: MCPError) -> str:
    if error.code == CONNECTION_CLOSED:
        return "closed the connection"
    if error.code == IN_WORDS:
        return error.message
    if error.code == UNREADABLE:
        return f"cannot be understood: {error.message}"
    return f"answered with an error: {_short(error.message)} (code {error.code})"


def _plain(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - a group of whatever
            yield from _plain(inner)  # pyright: ignore[reportUnknownArgumentType] - as above
    else:
        yield error


def _short(text: str) -> str:
    text = " ".join(text.split()).rstrip(".")
    return text if len(text) <= _LIMIT else f"{text[:_LIMIT]}..."
