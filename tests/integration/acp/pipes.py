"""Two ends of a wire made of real descriptors."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

from attrs import frozen

from punie.mechanics.jsonrpc.stdio import FdTransport


@frozen
class Ends:
    """`ours` reads what is written to `to_us`, and writes what is read from `from_us`."""

    ours: FdTransport
    to_us: int
    from_us: int


def close(*fds: int) -> None:
    for fd in fds:
        try:
            os.close(fd)
        except OSError:
            continue


@contextmanager
def wire(kind: str = "pipe", max_line_bytes: int = 2**26) -> Iterator[Ends]:
    """A transport on pipes, on sockets, on one socket for both ways, or on pipes served by threads."""
    if kind in {"pipe", "threads"}:
        (our_in, to_us), (from_us, our_out) = os.pipe(), os.pipe()
    else:
        pairs = [[end.detach() for end in socket.socketpair()] for _ in range(1 if kind == "one socket" else 2)]
        our_in, to_us = pairs[0]
        our_out, from_us = pairs[-1]
    with closing(FdTransport(our_in, our_out, max_line_bytes)) as ours:
        if kind == "threads":
            ours._use_threads()
            ours.close()  # blocking again: the threads may block
        try:
            yield Ends(ours, to_us, from_us)
        finally:
            if kind == "threads":
                close(to_us, from_us)  # wakes the threads
            else:
                close(to_us, from_us, our_in, our_out)
