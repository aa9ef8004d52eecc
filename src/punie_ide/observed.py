"""Wrappers of the IDE's files and terminals that record their use as events.

The agent's `fs/*` and `terminal/*` requests and the IDE's tools use the same wrappers, one of each kind a session.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
import anyio.abc
from attrs import define, field

from punie.api import Command, ExitStatus, TerminalOutput, Terminals, ToldToModel, UnknownTerminalError, Workspace
from punie_ide.events import FileRead, FileWritten, IdeEvent, ProgramEnded, ProgramPrinted, ProgramStarted

REFRESH_S = 0.1
"""The time between two looks at the output of a running program, as an IDE repaints its terminal."""

CLEAN_UP_S = 2.0
_OVERLAP_CHARS = 256

Record = Callable[[IdeEvent], None]


@define
class ObservedWorkspace(Workspace):
    """Records each file that is read, and each that is written with its text before."""

    inner: Workspace
    record: Record

    async def read_text(self, path: str, *, line_1based: int | None = None, limit_lines: int | None = None) -> str:
        """Read through."""
        text = await self.inner.read_text(path, line_1based=line_1based, limit_lines=limit_lines)
        self.record(FileRead(path))
        return text

    async def write_text(self, path: str, content: str) -> None:
        """Write through."""
        old = await self._before(path)
        await self.inner.write_text(path, content)
        self.record(FileWritten(path, old, content))

    async def _before(self, path: str) -> str | None:
        try:
            return await self.inner.read_text(path)
        except ToldToModel:
            return None


@define
class _Screen:
    """The output of one terminal that was recorded already."""

    shown: str = ""
    ended: bool = False


@define
class ObservedTerminals(Terminals):
    """Records the output of programs while they print; knows only the terminals that were created through it.

    `tasks` runs the watching of each terminal until its program ends or it is released. `background` marks programs of
    the IDE's tools.
    """

    inner: Terminals
    record: Record
    tasks: anyio.abc.TaskGroup
    background: bool = False
    _screens: dict[str, _Screen] = field(factory=dict, init=False)

    @property
    def shown_by_client(self) -> bool:
        """As for the inner terminals."""
        return self.inner.shown_by_client

    async def holds_boxes(self) -> bool:
        """As for the inner terminals."""
        return await self.inner.holds_boxes()

    async def create(self, command: Command) -> str:
        """Start a program and watch it."""
        terminal_id = await self.inner.create(command)
        self._screens[terminal_id] = _Screen()
        self.record(ProgramStarted(terminal_id, command.line, command.cwd, self.background))
        self.tasks.start_soon(self._watch, terminal_id)
        return terminal_id

    async def output(self, terminal_id: str) -> TerminalOutput:
        """The output so far."""
        self._check(terminal_id)
        output = await self.inner.output(terminal_id)
        self._show(terminal_id, output)
        return output

    async def wait(self, terminal_id: str) -> ExitStatus:
        """Wait for the program, and record the rest of its output."""
        self._check(terminal_id)
        status = await self.inner.wait(terminal_id)
        if terminal_id in self._screens:
            self._show(terminal_id, await self.inner.output(terminal_id))
        return status

    async def kill(self, terminal_id: str) -> None:
        """End the program."""
        self._check(terminal_id)
        await self.inner.kill(terminal_id)

    async def release(self, terminal_id: str) -> None:
        """Record the rest of the output, then forget the terminal."""
        self._check(terminal_id)
        try:
            self._show(terminal_id, await self.inner.output(terminal_id))
        finally:
            self._screens.pop(terminal_id, None)
            await self.inner.release(terminal_id)

    async def release_all(self) -> None:
        """Release the terminals that are left; waits `CLEAN_UP_S` at most, also when cancelled."""
        with anyio.move_on_after(CLEAN_UP_S, shield=True):
            for terminal_id in tuple(self._screens):
                await self.release(terminal_id)

    def _check(self, terminal_id: str) -> None:
        if terminal_id not in self._screens:
            raise UnknownTerminalError(terminal_id)

    async def _watch(self, terminal_id: str) -> None:
        try:
            while (screen := self._screens.get(terminal_id)) is not None and not screen.ended:
                self._show(terminal_id, await self.inner.output(terminal_id))
                with anyio.move_on_after(REFRESH_S):
                    await self.inner.wait(terminal_id)
        except ToldToModel:
            return  # released meanwhile, with the rest of the output recorded

    def _show(self, terminal_id: str, output: TerminalOutput) -> None:
        screen = self._screens.get(terminal_id)
        if screen is None:
            return
        if news := _news(screen.shown, output.text):
            screen.shown = output.text
            self.record(ProgramPrinted(terminal_id, news))
        if output.exit is not None and not screen.ended:
            screen.ended = True
            self.record(ProgramEnded(terminal_id, output.exit.exit_code, output.exit.signal))


def _news(shown: str, now: str) -> str:
    """The part of `now` that was not shown yet; the beginning of `now` may have been dropped meanwhile."""
    if now.startswith(shown):
        return now[len(shown) :]
    tail = shown[-_OVERLAP_CHARS:]
    found = now.rfind(tail)
    return now if found < 0 else now[found + len(tail) :]
