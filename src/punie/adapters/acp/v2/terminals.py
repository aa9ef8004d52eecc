"""Programs of this machine shown by the client while they print (ACP v2, display-only terminals)."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from anyio.abc import TaskGroup
from attrs import define, field, frozen

from punie.adapters.acp.blocks import present
from punie.adapters.acp.v2.activity import Update
from punie.domain.errors import PunieError, UnknownTerminalError
from punie.domain.values.terminal import Command, ExitStatus, TerminalOutput
from punie.ports.workspace import Terminals

LOOK_FIRST_S: Final = 0.1
LOOK_LAST_S: Final = 1.0
"""The shortest and the longest pause between two looks at the output of a program."""

LIVE_TAIL_CHARS: Final = 20_000
"""The most output that is sent at once while a program runs; of more output the end."""


@frozen(eq=False)
class Screen:
    """The client that terminals are shown to; `tell` sends an update without waiting, `say` waits for its reader.

    `tasks` runs what follows the terminals; it outlives them, or ends with the client's connection.
    """

    tell: Callable[[Update], None]
    say: Callable[[Update], Awaitable[None]]
    tasks: TaskGroup


@define(eq=False)
class _Shown:
    """One terminal as the client has it; `text` is the output that was sent."""

    id: str
    command: Command
    text: str = ""
    ended: bool = False


@define(eq=False)
class ShownTerminals(Terminals):
    """Terminals of this machine that a client shows; lives as long as their session.

    `mark` makes their ids unique in the session, also among those of other processes that work on it.
    """

    inner: Terminals
    screen: Screen
    mark: str
    _shown: dict[str, _Shown] = field(factory=dict[str, _Shown], init=False)

    @property
    def shown_by_client(self) -> bool:
        return True

    async def holds_boxes(self) -> bool:
        return await self.inner.holds_boxes()

    async def create(self, command: Command) -> str:
        inner_id = await self.inner.create(command)
        terminal_id = f"{inner_id}-{self.mark}"
        shown = self._shown[terminal_id] = _Shown(inner_id, command)
        self._begin(terminal_id, shown)
        return terminal_id

    async def output(self, terminal_id: str) -> TerminalOutput:
        return await self.inner.output(self._find(terminal_id).id)

    async def wait(self, terminal_id: str) -> ExitStatus:
        shown = self._find(terminal_id)
        status = await self.inner.wait(shown.id)
        if not shown.ended and terminal_id in self._shown:  # else its release reports the end
            self._end(terminal_id, shown, await self.inner.output(shown.id))
        return status

    async def kill(self, terminal_id: str) -> None:
        await self.inner.kill(self._find(terminal_id).id)

    async def release(self, terminal_id: str) -> None:
        shown = self._find(terminal_id)
        del self._shown[terminal_id]
        output = await self.inner.output(shown.id)
        await self.inner.release(shown.id)
        self._end(terminal_id, shown, output)

    def runs(self, terminal_id: str) -> bool:
        """Whether the program runs, so that the client may stop it."""
        shown = self._shown.get(terminal_id)
        return shown is not None and not shown.ended

    def move(self, screen: Screen) -> None:
        """Show the running programs, with their output so far, to another client from now on. Returns at once."""
        self.screen = screen
        for terminal_id, shown in self._shown.items():
            if not shown.ended:
                self._begin(terminal_id, shown)

    def _begin(self, terminal_id: str, shown: _Shown) -> None:
        command = shown.command
        begun: Update = {"command": command.line, "cwd": command.cwd, "capabilities": {"cancel": {}}}
        if shown.text:
            begun["output"] = {"data": _encoded(shown.text)}
        self.screen.tell(_update(terminal_id, begun))
        tasks = self.screen.tasks
        if not tasks.cancel_scope.cancel_called:  # else no client is connected until the next `move`
            tasks.start_soon(self._follow, terminal_id, shown)

    def _find(self, terminal_id: str) -> _Shown:
        shown = self._shown.get(terminal_id)
        if shown is None:
            raise UnknownTerminalError(terminal_id)
        return shown

    async def _follow(self, terminal_id: str, shown: _Shown) -> None:
        """Send the output of a terminal until it ends or is released."""
        pause_s = LOOK_FIRST_S
        try:
            while not shown.ended:
                with anyio.move_on_after(pause_s):
                    await self.wait(terminal_id)
                    return
                text = (await self.output(terminal_id)).text[-LIVE_TAIL_CHARS:]
                new = None if shown.ended else self._new(terminal_id, shown, text)
                pause_s = min(2 * pause_s, LOOK_LAST_S) if new is None else LOOK_FIRST_S
                if new is not None:
                    await self.screen.say(new)
        except PunieError:
            return  # its release reports the end

    def _new(self, terminal_id: str, shown: _Shown, text: str) -> Update | None:
        """The update for new output: a chunk, or all of it where it does not continue what the client has."""
        before, shown.text = shown.text, text
        if text == before:
            return None
        if text.startswith(before):
            data = _encoded(text[len(before) :])
            return {"sessionUpdate": "terminal_output_chunk", "terminalId": terminal_id, "data": data}
        return _update(terminal_id, {"output": {"data": _encoded(text)}})

    def _end(self, terminal_id: str, shown: _Shown, output: TerminalOutput) -> None:
        """Report the end once, before `wait` and `release` return."""
        if shown.ended:
            return
        shown.ended = True
        new = self._new(terminal_id, shown, output.text)
        if new is not None:
            self.screen.tell(new)
        self.screen.tell(_update(terminal_id, {"exitStatus": exit_status(output.exit), "capabilities": None}))


def exit_status(status: ExitStatus | None) -> Update:
    """The exit status of a program, as far as it is known."""
    return {} if status is None else {**present(exitCode=status.exit_code, signal=status.signal)}


def printed_update(terminal_id: str, output: str, status: ExitStatus) -> Update:
    """The update for a terminal that has ended, with all of its output."""
    told: Update = {"output": {"data": _encoded(output)}, "exitStatus": exit_status(status)}
    return _update(terminal_id, told)


def _update(terminal_id: str, members: Update) -> Update:
    return {"sessionUpdate": "terminal_update", "terminalId": terminal_id, **members}


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
