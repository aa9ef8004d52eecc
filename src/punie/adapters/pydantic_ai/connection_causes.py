"""What kept a connection from being made, read off the error's causes."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator
from typing import cast

_DEEPEST = 20
_NO_ROUTE = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN}


def cause_of(error: BaseException) -> str:
    """A clause about the server, such as `nothing listens there`; empty where the error does not tell."""
    causes = list(_causes(error))
    for kind, said in _KINDS:
        if any(isinstance(cause, kind) for cause in causes):
            return said
    if any(isinstance(cause, OSError) and cause.errno in _NO_ROUTE for cause in causes):
        return "there is no route to it"
    return ""


_KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (ssl.SSLCertVerificationError, "its certificate is not trusted here (SSL_CERT_FILE names further ones)"),
    (ssl.SSLError, "it does not speak TLS as https needs it"),
    (socket.gaierror, "its name is not known"),
    (ConnectionRefusedError, "nothing listens there"),
)


def _causes(error: BaseException, deep: int = 0) -> Iterator[BaseException]:
    if deep > _DEEPEST:
        return
    yield error
    inner = cast("tuple[BaseException, ...]", getattr(error, "exceptions", ()))  # those of a group
    for one in (*inner, error.__cause__ or error.__context__):
        if one is not None:
            yield from _causes(one, deep + 1)
