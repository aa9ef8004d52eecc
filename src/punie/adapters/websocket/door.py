"""The door of a server: who is let in, and what everyone else is told.

The checks are those of docs/serve.md ("Security"). No part of a request is copied into an answer, since a client may
have put its token anywhere.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeAlias

from attrs import frozen
from websockets.datastructures import Headers
from websockets.http11 import Request

from punie.domain.values.person import Admitted, NotAdmitted

TOKEN_PREFIX = "bearer."  # noqa: S105 - the name of a way to send a token, none itself
"""A browser cannot set headers, so it offers the subprotocols `acp` and this prefix followed by the token."""


Admit: TypeAlias = Callable[[str], Awaitable[Admitted | NotAdmitted]]
"""Checks a token that is not the server's own; takes no longer than a handshake may."""


@frozen
class Refusal:
    """An HTTP response in place of the upgrade to a WebSocket; `words` is its body."""

    status: HTTPStatus
    words: str


@frozen
class Door:
    """The access rules of one server.

    `token` is what a client has to present, or one that `admit` takes, `path` the only path that is served, `origins`
    the browser origins that are allowed. With `local_only`, for a server on the loopback interface, the `Host` header
    must name this machine.
    """

    token: str
    path: str = "/acp"
    origins: frozenset[str] = frozenset()
    local_only: bool = True
    admit: Admit | None = None

    async def answer(self, request: Request) -> Refusal | Admitted:
        """The visitor, or why the request is refused. A client without a token is told about the token only."""
        headers = request.headers
        if self.local_only and not _names_this_machine(_only(headers, "Host")):
            return Refusal(HTTPStatus.MISDIRECTED_REQUEST, "This server is asked for by the name localhost only.")
        if "Origin" in headers and _origin(_only(headers, "Origin") or "") not in self.origins:
            return Refusal(HTTPStatus.FORBIDDEN, "This origin is not allowed; see punie serve --allow-origin.")
        visitor = await self._visitor(_token_in(headers))
        if isinstance(visitor, NotAdmitted):
            status = HTTPStatus.SERVICE_UNAVAILABLE if visitor.try_again else HTTPStatus.UNAUTHORIZED
            why = f" This one is refused: {visitor.words}." if visitor.words else ""
            return Refusal(status, f"A valid token is needed: Authorization: Bearer TOKEN.{why}")
        if request.path.partition("?")[0] != self.path:
            return Refusal(HTTPStatus.NOT_FOUND, f"There is nothing here; the agent is at {self.path}.")
        return visitor

    async def _visitor(self, given: str | None) -> Admitted | NotAdmitted:
        """Compare with the own token in constant time, so that the time says nothing about a wrong one."""
        if given is None:
            return NotAdmitted("")
        if hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.token.encode("ascii")):
            return Admitted()
        return NotAdmitted("") if self.admit is None else await self.admit(given)


def _token_in(headers: Headers) -> str | None:
    """The token that a request carries; None where it has none, or more than one."""
    given = _only(headers, "Authorization")
    if given is not None:
        scheme, _, token = given.partition(" ")
        return token.strip() if scheme.lower() == "bearer" else None
    offered = [word.strip() for value in headers.get_all("Sec-WebSocket-Protocol") for word in value.split(",")]
    tokens = [word.removeprefix(TOKEN_PREFIX) for word in offered if word.startswith(TOKEN_PREFIX)]
    return tokens[0] if len(tokens) == 1 else None


def is_loopback(host: str) -> bool:
    """Whether a socket bound to this host is reachable from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def normal_origin(origin: str) -> str | None:
    """The origin in the form that browsers send, or None where the text is no origin.

    `null` is refused as well: every sandboxed page sends it.
    """
    scheme, separator, rest = _origin(origin).partition("://")
    if not separator or not scheme or not rest or not rest.isprintable() or any(sign in rest for sign in "/?#@* "):
        return None
    return f"{scheme}://{rest}"


def _origin(given: str) -> str:
    return given.strip().lower().removesuffix("/")


def _names_this_machine(host: str | None) -> bool:
    """Whether a `Host` header names the loopback interface.

    In DNS rebinding, a page under a foreign name that resolves to this machine sends the foreign name.
    """
    if host is None:
        return False
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return is_loopback(name)


def _only(headers: Headers, name: str) -> str | None:
    """The single value of a header; None where the header is missing or repeated."""
    values = headers.get_all(name)
    return values[0] if len(values) == 1 else None
