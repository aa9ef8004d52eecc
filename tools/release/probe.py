"""What the ACP registry asks of every agent before it is listed, and each day after.

An agent is spawned with an empty home and no keys. `initialize`, as the registry's client sends it, has to be answered
with at least one way to log in of type `agent` or `terminal`; then the methods of its daily matrix are called, and none
may be unknown (-32601). Whether a call succeeds does not count there, and so not here.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

TIME_S = 30.0
METHOD_NOT_FOUND = -32601
KEPT = ("PATH", "LANG", "TMPDIR", "SYSTEMROOT", "PYTHONPATH")
INITIALIZE: Mapping[str, Any] = {
    "protocolVersion": 1,
    "clientInfo": {"name": "registry-probe", "version": "1.0.0"},
    "clientCapabilities": {
        "fs": {"readTextFile": True, "writeTextFile": True},
        "terminal": True,
        "_meta": {"terminal-auth": True},
    },
}
MATRIX = ("session/new", "session/list", "session/fork", "session/resume", "session/set_model", "session/close")


class Speaker:
    """One agent process and the conversation with it; ends with the `with` block."""

    def __init__(self, command: Sequence[str], home: Path, time_s: float, environment: Mapping[str, str]) -> None:
        """Start it in an empty folder that is its home; `time_s` is for each answer."""
        self._process = subprocess.Popen(
            list(command),
            cwd=home,
            env={**environment, "HOME": str(home), "TERM": "dumb"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._number, self._time_s = 0, time_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            _pipe(self._process.stdin).close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _pipe(self._process.stdout).close()

    def call(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to that request; what else the agent says is passed over.

        Raises `TimeoutError`, `EOFError` where it is gone, `ValueError` for a line that is no JSON.
        """
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        sink, end = _pipe(self._process.stdin), time.monotonic() + self._time_s
        try:
            sink.write(json.dumps(request).encode() + b"\n")
            sink.flush()
        except BrokenPipeError as error:
            raise EOFError(f"the agent ended instead of answering {method}") from error
        while True:
            message: dict[str, Any] = json.loads(self._line(end, method))
            if message.get("id") == self._number and "method" not in message:
                return message

    def _line(self, end: float, method: str) -> bytes:
        """One line, read byte by byte so that none waits in a buffer while `select` says that nothing is there."""
        source, line = _pipe(self._process.stdout).fileno(), b""
        while not line.endswith(b"\n"):
            if not select.select([source], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"no answer to {method} within {self._time_s:g} s")
            byte = os.read(source, 1)
            if not byte:
                raise EOFError(f"the agent ended instead of answering {method}")
            line += byte
        return line


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ValueError("the process has no such pipe")
    return pipe


def faults(command: Sequence[str], time_s: float = TIME_S, environment: Mapping[str, str] | None = None) -> list[str]:
    """What the registry would hold against the agent that this command starts; a sentence each.

    It sees nothing of our environment but where programs are, or what is given instead; its home is empty all the same.
    """
    if environment is None:
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    with tempfile.TemporaryDirectory(prefix="punie-probe-") as scratch:
        try:
            with Speaker(command, Path(scratch), time_s, environment) as agent:
                return _auth_faults(agent.call("initialize", INITIALIZE)) or _matrix_faults(agent, scratch)
        except (EOFError, OSError, ValueError) as error:  # TimeoutError is an OSError
            return [f"{command[0]}: {error}"]


def _auth_faults(answer: Mapping[str, Any]) -> list[str]:
    if "result" not in answer:
        return [f"initialize was refused: {answer.get('error')}"]
    kinds = [method.get("type", "agent") for method in answer["result"].get("authMethods", [])]
    if not {"agent", "terminal"} & set(kinds):
        return [f"no authMethods of type agent or terminal, but {kinds}"]
    return []


def _matrix_faults(agent: Speaker, cwd: str) -> list[str]:
    """Call each method once, on one session where it needs one."""
    where: dict[str, Any] = {"cwd": cwd, "mcpServers": []}
    opened = agent.call("session/new", where)
    session: str = opened.get("result", {}).get("sessionId", "none")
    answers = {"session/new": opened}
    more: dict[str, dict[str, Any]] = {
        "session/list": {},
        "session/fork": {"sessionId": session, **where},
        "session/resume": {"sessionId": session, **where},
        "session/set_model": {"sessionId": session, "modelId": "direct"},
        "session/close": {"sessionId": session},
    }
    answers |= {method: agent.call(method, params) for method, params in more.items()}
    return [
        f"{method} is an unknown method: {answers[method]['error']}"
        for method in MATRIX
        if answers[method].get("error", {}).get("code") == METHOD_NOT_FOUND
    ]


def main(command: Sequence[str]) -> int:
    """Probe the agent of that command line."""
    found = faults(command)
    for fault in found:
        print(f"probe: {fault}", file=sys.stderr)
    if not found:
        print(f"probe: starts with an empty home and no keys; knows {', '.join(MATRIX)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [sys.executable, "-m", "punie", "acp"]))
