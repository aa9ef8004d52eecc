"""A program that has loaded the product and forks a `punie` process for each request; `forking.py` asks it.

A forked process has its own process id, environment, working directory and standard streams, and is a child of the
process that asked. The modules that it does not have to load are the difference from an executed one.

    python fork_server.py DESCRIPTOR

The descriptor is one end of a Unix socket pair. A request is a JSON object (`args`, `env`, `cwd`, `session`: whether it
leads a session of its own) with three descriptors, which become its standard streams; the answer is its process id.
The program ends when the other end is closed.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

PRODUCT = ("punie", "punie_ide", "punie_openai_agents", "punie_scripted", "shellsight")
LOADED_LATER = ("encodings.idna", "mcp.client.stdio")
NEVER_LOADED = ("keyring",)
"""Libraries that read their settings from the environment while they load."""
MAX_REQUEST_BYTES = 1 << 20


def load() -> None:
    """Load every module of the product that can load here, and with them their libraries."""
    for name in PRODUCT:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}.", onerror=lambda _: None):
            if not module.name.endswith("__main__"):
                _load(module.name)
    for name in LOADED_LATER:
        _load(name)
    found = [name for name in NEVER_LOADED if name in sys.modules]
    assert not found, f"loaded, though they read the environment: {found}"
    assert threading.active_count() == 1, threading.enumerate()
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a library has started a thread: no fork is safe any more"


def _load(name: str) -> None:
    with contextlib.suppress(ImportError):  # of an extra that is not installed
        importlib.import_module(name)


def serve(wire: socket.socket) -> dict[str, Any] | None:
    """Fork for each request: returns the request in the forked process, and `None` here once nobody asks any more."""
    while True:
        data, streams, _, _ = socket.recv_fds(wire, MAX_REQUEST_BYTES, 3)
        if not data:
            return None
        request = json.loads(data)
        reading, writing = os.pipe()
        if (between := os.fork()) == 0:
            if (child := os.fork()) != 0:
                os.write(writing, str(child).encode())
                os._exit(0)  # so that the child becomes one of the process that asked, see `forking.py`
            os.close(reading)
            os.close(writing)
            wire.close()
            become(request, streams)
            return request
        os.close(writing)
        child_id = os.read(reading, 32)
        os.close(reading)
        for descriptor in streams:
            os.close(descriptor)
        os.waitpid(between, 0)
        wire.send(child_id)


def become(request: dict[str, Any], streams: list[int]) -> None:
    """Take on what an executed process would have got."""
    if request["session"]:
        os.setsid()
    for standard, descriptor in enumerate(streams):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    tempfile.tempdir = None
    sys.path[0] = request["cwd"]
    sys.argv = ["-m", *request["args"]]
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8", "strict")
    sys.stdout = sys.__stdout__ = _writer(1, "strict", by_line=os.isatty(1))
    sys.stderr = sys.__stderr__ = _writer(2, "backslashreplace", by_line=True)


def _writer(descriptor: int, errors: str, *, by_line: bool) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", errors, line_buffering=by_line)


def main() -> None:
    """Serve; the forked process runs `python -m punie` to its end."""
    wire = socket.socket(fileno=int(sys.argv[1]))
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    load()
    gc.collect()
    gc.freeze()
    wire.send(b"ready")
    if serve(wire) is not None:
        try:
            runpy.run_module("punie", run_name="__main__", alter_sys=True)
        except SystemExit as end:
            if isinstance(end.code, int):
                leave(end.code)
            raise


def leave(code: int) -> None:
    """End as the interpreter does, but for taking apart every loaded module; returns where that fails."""
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]  waits for threads that are no daemons
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
