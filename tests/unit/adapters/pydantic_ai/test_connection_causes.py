"""The cause of a connection that was not made is found, however deep the libraries bury it."""

from __future__ import annotations

import errno
import socket
import ssl

import pytest

from punie.adapters.pydantic_ai.failures import cause_of


def buried(cause: BaseException) -> Exception:
    """As HTTP clients raise it."""
    failed = OSError("All connection attempts failed")
    failed.__cause__ = BaseExceptionGroup("attempts", [ValueError(), cause])
    shown = RuntimeError("Connection error.")
    shown.__context__ = failed
    return shown


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (ssl.SSLCertVerificationError(1, "self-signed certificate"), "its certificate is not trusted here"),
        (ssl.SSLError(1, "wrong version number"), "does not speak TLS"),
        (socket.gaierror(-2, "Name or service not known"), "its name is not known"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), "nothing listens there"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "there is no route to it"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_cause_is_said_in_a_clause(cause: BaseException, said: str) -> None:
    assert said in cause_of(buried(cause))


def test_of_an_unknown_cause_nothing_is_said() -> None:
    assert cause_of(buried(OSError(errno.EPIPE, "Broken pipe"))) == ""


def test_errors_that_go_round_in_a_circle_end() -> None:
    one, other = RuntimeError(), RuntimeError()
    one.__cause__, other.__cause__ = other, one
    assert cause_of(one) == ""
