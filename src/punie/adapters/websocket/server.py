"""Who may come in: what is looked at in a request before it becomes a WebSocket (docs/serve.md, security).

Nothing of the request is put into a log or an answer: a client may have put its token anywhere.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Self, cast

import anyio
from anyio.abc import SocketAttribute, SocketListener, SocketStream, TaskGroup
from attrs import define, field, frozen
from websockets.datastructures import Headers
from websockets.frames import CloseCode
from websockets.http11 import Request
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from punie.adapters.websocket.wire import CHUNK_BYTES, LOST, Limits, WebSocketWire

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


CONNECTIONS_LIMIT = 64
HANDSHAKES_LIMIT = 32
"""Sockets that may be at their handshake; one more is closed unread."""

BREATH_S = 0.1
"""How long nobody is accepted where the system has no room for one more."""

CONNECTION_ID = "Acp-Connection-Id"

Serve = Callable[[WebSocketWire], Awaitable[None]]
"""Serves one client, until it is gone or nothing more is to be said to it."""


@define(eq=False)
class Listening:
    """Where clients come in; an async context manager that lives as long as the server."""

    listeners: Sequence[SocketListener]
    port: int

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for listener in self.listeners:
            await listener.aclose()


async def listen(host: str, port: int) -> Listening:
    """Listen at every address of that name; 0 picks a port. Raises `OSError`."""
    listeners = (await anyio.create_tcp_listener(local_host=host, local_port=port)).listeners
    sockets = tuple(cast("SocketListener", listener) for listener in listeners)
    return Listening(sockets, sockets[0].extra(SocketAttribute.local_port))  # noqa: S610 - no Django


@define(eq=False)
class WebSocketServer:
    """Lives as long as the server; each client is served in a task of its own."""

    door: Door
    limits: Limits
    log: logging.Logger
    connections_limit: int = CONNECTIONS_LIMIT
    handshakes_limit: int = HANDSHAKES_LIMIT
    _open: int = field(default=0, init=False)
    _shaking: int = field(default=0, init=False)
    _accepting: anyio.CancelScope = field(factory=anyio.CancelScope, init=False)

    async def serve(self, listening: Listening, client: Serve) -> None:
        """Accept clients until `stop`; gives back when those that were let in are served to their end."""
        async with anyio.create_task_group() as clients:
            with self._accepting:
                async with anyio.create_task_group() as accepting:
                    for listener in listening.listeners:
                        accepting.start_soon(self._accept, listener, clients, client)

    def stop(self) -> None:
        """Let nobody in any more; returns at once."""
        self._accepting.cancel()

    async def _accept(self, listener: SocketListener, clients: TaskGroup, client: Serve) -> None:
        while True:
            try:
                stream = await listener.accept()
            except OSError as error:  # out of descriptors, or the client was gone again
                self.log.warning("a client could not be accepted: %s", error.strerror)
                await anyio.sleep(BREATH_S)
                continue
            clients.start_soon(self._one, stream, client)

    async def _one(self, stream: SocketStream, client: Serve) -> None:
        try:
            wire = await self._let_in(stream)
            if wire is None:
                return
            self._open += 1
            try:
                await client(wire)
            finally:
                self._open -= 1
                await wire.close(CloseCode.GOING_AWAY, "")
        except Exception:  # the fault of one client's connection ends that connection alone
            self.log.exception("a connection failed")
        finally:
            await anyio.aclose_forcefully(stream)

    async def _let_in(self, stream: SocketStream) -> WebSocketWire | None:
        if self._shaking >= self.handshakes_limit:
            self.log.warning("over %d clients are at their handshake: one more was closed", self.handshakes_limit)
            return None
        self._shaking += 1
        try:
            with anyio.move_on_after(self.limits.handshake_s):
                return await self._shake_hands(stream)
            self.log.info("a client did not come to the end of its handshake")
        except LOST:
            self.log.info("a client left during its handshake")
        finally:
            self._shaking -= 1
        return None

    async def _shake_hands(self, stream: SocketStream) -> WebSocketWire | None:
        protocol = ServerProtocol(
            select_subprotocol=_subprotocol, max_size=self.limits.message_bytes, logger=_quiet(self.log)
        )
        while not (events := protocol.events_received()):
            if protocol.handshake_exc is not None:
                await _write(protocol, stream)
                return None
            protocol.receive_data(await stream.receive(CHUNK_BYTES))
        if protocol.eof_sent:  # behind the request came what no client says before it is let in
            return None
        request, *frames = events
        refusal = self._refusal(cast("Request", request))
        if refusal is None:
            response = protocol.accept(cast("Request", request))
            response.headers[CONNECTION_ID] = uuid.uuid4().hex
        else:
            self.log.warning("refused a client: %d %s", refusal.status, refusal.words)
            response = protocol.reject(refusal.status, f"{refusal.words}\n")
            if refusal.status is HTTPStatus.UNAUTHORIZED:
                response.headers["WWW-Authenticate"] = "Bearer"
        protocol.send_response(response)
        await _write(protocol, stream)
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            return None
        wire = WebSocketWire(stream, protocol, self.limits, self.log)
        wire.take(frames)
        return wire

    def _refusal(self, request: Request) -> Refusal | None:
        refusal = self.door.refusal(request)
        if refusal is None and self._open >= self.connections_limit:
            return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, f"{self.connections_limit} clients are connected already.")
        return refusal


def _subprotocol(_protocol: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """Never the one with the token in it."""
    return next((word for word in offered if word == SUBPROTOCOL), None)


async def _write(protocol: ServerProtocol, stream: SocketStream) -> None:
    for piece in protocol.data_to_send():
        await (stream.send(piece) if piece else stream.send_eof())


def _quiet(log: logging.Logger) -> logging.Logger:
    """The library writes headers, tokens included, to its log; what went wrong it says in the answer as well."""
    quiet = log.getChild("library")
    quiet.setLevel(logging.CRITICAL)
    return quiet
