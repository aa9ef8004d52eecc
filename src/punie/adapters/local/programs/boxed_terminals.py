"""Terminals elsewhere whose programs run in this machine's boxes, where both are on the same machine."""

from __future__ import annotations

import os
import secrets
import sys

import anyio
import anyio.to_thread
from attrs import define, evolve, field

from punie.adapters.local.files.output_store import LocalOutputStore
from punie.adapters.local.programs.boxes import Boxes, Confined, remove_folder
from punie.domain.errors import PunieError, ToolFailedError
from punie.domain.values.terminal import Box, Command, Confinement, ExitStatus, TerminalOutput
from punie.ports.workspace import Terminals

PROBE_LIMIT_S = 5.0


@define(eq=False)
class BoxedTerminals(Terminals):
    """The client's terminals; lives as long as the session.

    A command with a box is started by the launcher, which enters the box and becomes the program. The first question
    whether that works is answered by trying it: a program in the client's terminal has to print a secret that only a
    boxed program on this machine can read.
    """

    inner: Terminals
    boxes: Boxes
    outputs: LocalOutputStore
    _holds: bool | None = field(default=None, init=False)
    _trying: anyio.Lock = field(factory=anyio.Lock, init=False)
    _folders: dict[str, str] = field(factory=dict[str, str], init=False)

    @property
    def shown_by_client(self) -> bool:
        return self.inner.shown_by_client

    async def holds_boxes(self) -> bool:
        async with self._trying:
            if self._holds is None:
                self._holds = os.name == "posix" and await self.boxes.hold() and await self._try()
            return self._holds

    async def create(self, command: Command) -> str:
        if command.confinement.box is Box.NONE:
            return await self.inner.create(command)
        confined = await anyio.to_thread.run_sync(self._confined, command)
        try:
            terminal_id = await self.inner.create(confined.command)
        except BaseException:
            remove_folder(confined.scratch)
            raise
        if confined.scratch is not None:
            self._folders[terminal_id] = confined.scratch
        return terminal_id

    async def output(self, terminal_id: str) -> TerminalOutput:
        return await self.inner.output(terminal_id)

    async def wait(self, terminal_id: str) -> ExitStatus:
        return await self.inner.wait(terminal_id)

    async def kill(self, terminal_id: str) -> None:
        await self.inner.kill(terminal_id)

    async def release(self, terminal_id: str) -> None:
        try:
            await self.inner.release(terminal_id)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(remove_folder, self._folders.pop(terminal_id, None))

    def _confined(self, command: Command) -> Confined:
        confined = self.boxes.confine(command)
        if confined.box is None or confined.scratch is None:
            return confined
        from landbox import launch

        # Beside the program's own folder, which it may change.
        file = f"{confined.scratch}.json"
        try:
            with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
                opened.write(confined.box.as_json())
        except OSError as error:
            raise ToolFailedError(
                f"The box of {command.program} cannot be written ({error}), so nothing was run."
            ) from None
        words = ("-I", "-S", "-B", launch.__file__, file, "--", command.program, *command.args)
        return evolve(confined, command=evolve(command, program=sys.executable, args=words))

    async def _try(self) -> bool:
        """Whether a program in the client's terminal prints, in its box, the secret that is written here."""
        try:
            secret = secrets.token_hex(16)
            path = await self.outputs.keep("probe", secret)
            if path is None:
                return False
            confinement = Confinement(Box.LOOK, reads=(path,))
            command = Command("/bin/cat", (path,), os.path.dirname(path), "cat", confinement=confinement)
            with anyio.move_on_after(PROBE_LIMIT_S):
                terminal_id = await self.create(command)
                try:
                    await self.inner.wait(terminal_id)
                    return (await self.inner.output(terminal_id)).text.strip() == secret
                finally:
                    with anyio.move_on_after(1.0, shield=True):
                        await self.release(terminal_id)
        except PunieError:
            pass
        return False
