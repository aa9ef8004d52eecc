"""Finding processes that left their group: daemons that a command started (Linux)."""

from __future__ import annotations

import os
import signal

MARK = "_PUNIE_TERMINALS"
"""The variable that every process below a terminal inherits; its value tells one session's from another's."""

_PASSES = 5


def kill_marked(mark: str) -> None:
    """Kill every process whose environment carries our mark; blocks for a few ms.

    A process that leaves its group by `setsid` is found by it. One that also drops its environment is not: no cheap
    means without rights finds that one. Does nothing where there is no /proc (macOS): there only groups are killed.
    """
    needle = f"{MARK}={mark}".encode()
    for _ in range(_PASSES):  # a process may have started another while we looked
        if not [pid for pid in _process_ids() if _kill_if_marked(pid, needle)]:
            return


def _process_ids() -> list[int]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    return [int(name) for name in names if name.isdigit() and int(name) != os.getpid()]


def _kill_if_marked(pid: int, needle: bytes) -> bool:
    try:
        handle = os.pidfd_open(pid)  # from here on the id cannot become another process's
    except (AttributeError, OSError):
        return False
    try:
        if needle not in _environment(pid):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


def _environment(pid: int) -> list[bytes]:
    with open(f"/proc/{pid}/environ", "rb") as file:
        return file.read().split(b"\0")
