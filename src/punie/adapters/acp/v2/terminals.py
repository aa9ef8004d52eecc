"""The programs that this machine runs, shown by the client as they print (ACP v2, display-only terminals)."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from anyio.abc import TaskGroup
from attrs import define, field, frozen

from punie.adapters.acp.v2.activity import Update
from punie.domain.errors import PunieError, UnknownTerminalError
from punie.domain.values.terminal import Command, ExitStatus, TerminalOutput
from punie.ports.workspace import Terminals

LOOK_FIRST_S: Final = 0.1
LOOK_LAST_S: Final = 1.0
"""How soon a program that prints is looked at again, and how late one that does not."""

LIVE_TAIL_CHARS: Final = 20_000
"""So much of what a program printed is sent at once while it runs: of one that prints more the latest."""


@frozen(eq=False)
class Screen:
    """A client's eyes. `tell` sends an update without waiting, `say` waits while the client does not read.

    `tasks` is where terminals are followed for it; it outlives them, or ends with the client's connection.
    """

    tell: Callable[[Update], None]
    say: Callable[[Update], Awaitable[None]]
    tasks: TaskGroup


@define(eq=False)
class _Shown:
    """One terminal as the client has it: `text` is what it was sent."""

    id: str
    command: Command
    text: str = ""
    ended: bool = False


@define(eq=False)
class ShownTerminals(Terminals):
    """Terminals of this machine in front of a client's eyes; lives as long as their session.

    `mark` makes their ids unique in the session, whichever process goes on with it.
    """

    inner: Terminals
    screen: Screen
    mark: str
    _shown: dict[str, _Shown] = field(factory=dict[str, _Shown], init=False)

    @property
    def shown_by_client(self) -> bool:
        return True

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
        if not shown.ended and terminal_id in self._shown:  # else whoever released it tells of its end
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
        """Whether the client may have it stopped."""
        shown = self._shown.get(terminal_id)
        return shown is not None and not shown.ended

    def move(self, screen: Screen) -> None:
        """Another client looks on from now: it is shown what runs, and what was printed so far. Returns at once."""
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
        if not tasks.cancel_scope.cancel_called:  # else no client looks on, until another one does
            tasks.start_soon(self._follow, terminal_id, shown)

    def _find(self, terminal_id: str) -> _Shown:
        shown = self._shown.get(terminal_id)
        if shown is None:
            raise UnknownTerminalError(terminal_id)
        return shown

    async def _follow(self, terminal_id: str, shown: _Shown) -> None:
        """Tell of it until it ends, or is released."""
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
            return  # whoever released it tells of its end

    def _new(self, terminal_id: str, shown: _Shown, text: str) -> Update | None:
        """What is new; where that does not go on from what the client has, all of it in its place."""
        before, shown.text = shown.text, text
        if text == before:
            return None
        if text.startswith(before):
            data = _encoded(text[len(before) :])
            return {"sessionUpdate": "terminal_output_chunk", "terminalId": terminal_id, "data": data}
        return _update(terminal_id, {"output": {"data": _encoded(text)}})

    def _end(self, terminal_id: str, shown: _Shown, output: TerminalOutput) -> None:
        """Tell of its end, once and at once: whoever waits for it goes on only then."""
        if shown.ended:
            return
        shown.ended = True
        new = self._new(terminal_id, shown, output.text)
        if new is not None:
            self.screen.tell(new)
        self.screen.tell(_update(terminal_id, {"exitStatus": exit_status(output.exit), "capabilities": None}))


def exit_status(status: ExitStatus | None) -> Update:
    """How a program ended, as far as that is known."""
    told = {} if status is None else {"exitCode": status.exit_code, "signal": status.signal}
    return {key: value for key, value in told.items() if value is not None}


def printed_update(terminal_id: str, output: str, status: ExitStatus) -> Update:
    """A terminal that ended, whole."""
    told: Update = {"output": {"data": _encoded(output)}, "exitStatus": exit_status(status)}
    return _update(terminal_id, told)


def _update(terminal_id: str, members: Update) -> Update:
    return {"sessionUpdate": "terminal_update", "terminalId": terminal_id, **members}


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
