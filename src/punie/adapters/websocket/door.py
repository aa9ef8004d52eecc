"""Who may come in: what is looked at in a request before it becomes a WebSocket (docs/serve.md, security).

Nothing of the request is put into a log or an answer: a client may have put its token anywhere.
"""

from __future__ import annotations

import hmac
import ipaddress
from http import HTTPStatus

from attrs import frozen
from websockets.datastructures import Headers
from websockets.http11 import Request

SUBPROTOCOL = "acp"
TOKEN_PREFIX = "bearer."  # noqa: S105 - the name of a way to send a token, none itself
"""A browser cannot set headers: it offers the subprotocols `acp` and this with the token behind it."""


@frozen
class Refusal:
    """An answer of HTTP instead of a WebSocket."""

    status: HTTPStatus
    words: str


@frozen
class Door:
    """The rules of one server. `local_only` is for one that listens on the loopback interface alone."""

    token: str
    path: str = "/acp"
    origins: frozenset[str] = frozenset()
    local_only: bool = True

    def refusal(self, request: Request) -> Refusal | None:
        """Why the request is not let in; None where it is. Whoever has no token learns nothing but that."""
        headers = request.headers
        if self.local_only and not _names_this_machine(_only(headers, "Host")):
            return Refusal(HTTPStatus.MISDIRECTED_REQUEST, "This server is asked for by the name localhost only.")
        if "Origin" in headers and _origin(_only(headers, "Origin") or "") not in self.origins:
            return Refusal(HTTPStatus.FORBIDDEN, "This origin is not allowed; see punie serve --allow-origin.")
        if not self._has_token(headers):
            return Refusal(HTTPStatus.UNAUTHORIZED, "A valid token is needed: Authorization: Bearer TOKEN.")
        if request.path.partition("?")[0] != self.path:
            return Refusal(HTTPStatus.NOT_FOUND, f"There is nothing here; the agent is at {self.path}.")
        return None

    def _has_token(self, headers: Headers) -> bool:
        given = _only(headers, "Authorization")
        if given is not None:
            scheme, _, token = given.partition(" ")
            return scheme.lower() == "bearer" and self._is_token(token.strip())
        offered = [word.strip() for value in headers.get_all("Sec-WebSocket-Protocol") for word in value.split(",")]
        tokens = [word.removeprefix(TOKEN_PREFIX) for word in offered if word.startswith(TOKEN_PREFIX)]
        return len(tokens) == 1 and self._is_token(tokens[0])

    def _is_token(self, given: str) -> bool:
        """Takes as long for a wrong token as for another wrong one."""
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.token.encode("ascii"))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def normal_origin(origin: str) -> str | None:
    """An origin as browsers send it; None for what is none, `null` included, which every sandboxed page sends."""
    scheme, separator, rest = _origin(origin).partition("://")
    if not separator or not scheme or not rest or not rest.isprintable() or any(sign in rest for sign in "/?#@* "):
        return None
    return f"{scheme}://{rest}"


def _origin(given: str) -> str:
    return given.strip().lower().removesuffix("/")


def _names_this_machine(host: str | None) -> bool:
    """DNS rebinding: a page of a stranger's name that resolves to this machine sends that name here."""
    if host is None:
        return False
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return is_loopback(name)


def _only(headers: Headers, name: str) -> str | None:
    """The one value of a header; None where it is missing, or there more than once."""
    values = headers.get_all(name)
    return values[0] if len(values) == 1 else None
