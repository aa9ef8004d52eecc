"""Looking at the processes of this machine (Linux's /proc)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio


def processes_with(word: str) -> list[int]:
    """Processes that have the word in their command line; zombies are not among them, for they have none."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if word.encode() in line:
                found.append(int(folder.name))
    return found


def children() -> set[int]:
    """The direct children of this process, zombies among them."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            found.update(map(int, (task / "children").read_text().split()))
        except OSError:  # a thread that ended meanwhile has no children
            continue
    return found


async def until(fact: Callable[[], bool]) -> None:
    """Wait for a fact of this machine that nobody announces; the caller bounds it."""
    while not fact():  # noqa: ASYNC110 - the process table sends no events
        await anyio.sleep(0.005)


async def until_gone(word: str) -> None:
    """Wait until no process has the word in its command line."""
    await until(lambda: not processes_with(word))
