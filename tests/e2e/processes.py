"""Looking at other processes: whether one still lives, and how to give a command a known process."""

from __future__ import annotations

from pathlib import Path

import anyio

from tests.e2e.promptness import BOUND_S, Stopwatch

_NAP_S = 0.01


def is_running(pid: int) -> bool:
    """True while the process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}


def sleeper(pid_file: Path) -> str:
    """A shell line that writes its process id and then waits for a minute."""
    return f"echo $$ > {pid_file}.part; mv {pid_file}.part {pid_file}; exec sleep 60"


async def pid_in(pid_file: Path, timeout_s: float = BOUND_S) -> int:
    """The process id in the file once it is there. Nobody tells when a file appears, hence the short naps."""
    with anyio.fail_after(timeout_s):
        while not await anyio.Path(pid_file).exists():  # noqa: ASYNC110  no event comes from another process
            await anyio.sleep(_NAP_S)
    return int(await anyio.Path(pid_file).read_text("utf-8"))


async def gone(pid: int, timeout_s: float = 2.0) -> None:
    """Wait until the process is gone. Nobody tells when another's child ends, hence the short naps."""
    ending = Stopwatch()
    with anyio.fail_after(BOUND_S):
        while is_running(pid):  # noqa: ASYNC110  no event comes from another process
            await anyio.sleep(_NAP_S)
    assert ending.seconds() < timeout_s
