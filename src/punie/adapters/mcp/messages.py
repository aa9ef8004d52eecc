"""Messages of a server, read without trusting any of them, and the words for what goes wrong with one."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Final, cast

import mcp_types as types
from mcp import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST

from punie.adapters.mcp.attempt import LinkError
from punie.mechanics.jsonrpc.lines import Oversized

LINE_LIMIT_BYTES: Final = 16 * 1024 * 1024
"""No single message may be longer; a longer one fails the request that it answers, and costs no more memory."""

EDGE_BYTES: Final = 512
"""What is kept of both ends of a line over the limit, where its id may be."""

UNREADABLE: Final = -32700
"""JSON-RPC's code for what could not be parsed; ours for an answer that cannot be used."""

_ID: Final = re.compile(rb'"id"\s*:\s*(?:(\d{1,15})|"([^"\\]{1,64})")')
_BODY: Final = re.compile(rb'"(?:result|error)"\s*:')
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")

RequestId = int | str


_WANTED: Final = frozenset(
    {
        "notifications/cancelled",
        "notifications/progress",
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
    }
)
"""The notifications that mean something to us; the others end here, so that a flood of them costs little."""


def read_line(line: bytes, waiting: Collection[RequestId]) -> list[SessionMessage] | None:
    """The message in a line, with bytes that are no UTF-8 replaced; an answer that cannot be used fails its request.

    None for a banner, a log line, garbage: a server's stray words end nothing. Empty for an unused notification.
    """
    text = line.decode("utf-8", "replace").strip()
    if not text.startswith("{"):
        return None
    try:
        value: Any = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return (
            refusals(line[:EDGE_BYTES], line[-EDGE_BYTES:], waiting, "its answer is no JSON that can be read") or None
        )
    if "id" not in value and value.get("method") not in _WANTED:
        return [] if "method" in value else None
    if _ESCAPED_SURROGATE.search(text):
        value = _without_lone_surrogates(value)
    try:
        return [SessionMessage(types.jsonrpc_message_adapter.validate_python(value, by_name=False))]
    except (ValueError, RecursionError):  # also the library's ValidationError
        answered = cast("dict[str, Any]", value).get("id")
        if isinstance(answered, (int, str)) and answered in waiting:
            return [refusal(answered, "its answer is no message of the protocol")]
        return None


def refused_oversize(line: Oversized, limit_bytes: int, waiting: Collection[RequestId]) -> list[SessionMessage]:
    """What fails the request that a line over the limit answers."""
    size, limit = line.size_bytes / 1_048_576, limit_bytes / 1_048_576
    reason = f"its answer has {size:.1f} MiB in one message, over the limit of {limit:.0f} MiB; ask for less at once"
    return refusals(line.head, line.tail, waiting, reason)


def refusals(head: bytes, tail: bytes, waiting: Collection[RequestId], reason: str) -> list[SessionMessage]:
    """Fail the request whose id stands at either end of an unreadable line; all that wait where it stands at neither.

    A line that is no answer to a known request fails none.
    """
    body = _BODY.search(head)
    found = _ID.search(head, 0, body.start() if body else len(head)) or _last_id(tail)
    if found is not None:
        answered: RequestId = int(found[1]) if found[1] else found[2].decode("ascii", "replace")
        if answered in waiting:
            return [refusal(answered, reason)]
    return [refusal(each, reason) for each in waiting] if body else []


def refusal(answered: RequestId, reason: str) -> SessionMessage:
    """An error in the server's place."""
    error = types.ErrorData(code=UNREADABLE, message=reason)
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=answered, error=error))


def _last_id(tail: bytes) -> re.Match[bytes] | None:
    """An id behind a body stands at the very end; one further in is part of the body."""
    everywhere = list(_ID.finditer(tail))
    found = everywhere[-1] if everywhere else None
    return found if found is not None and tail[found.end() :].strip() in {b"}", b',"jsonrpc":"2.0"}'} else None


def _no_number(_name: str) -> None:
    """NaN and the infinities are no JSON; they count as null."""


def _without_lone_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_lone_surrogates(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {_without_lone_surrogates(key): _without_lone_surrogates(item) for key, item in items}
    return value


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
