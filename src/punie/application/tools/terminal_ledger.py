"""Which terminals a session owns, so that none is touched that is not, and none is left behind (R-16, A-09)."""

from __future__ import annotations

import logging

import anyio
from attrs import define, field

from punie.domain.errors import PunieError, UnknownTerminalError
from punie.ports.workspace import Terminals

RELEASE_LIMIT_S = 0.5
"""How long a release may hold up a cancelled turn or a closing session; the other side frees it in its own time."""


@define
class TerminalLedger:
    """The terminals of one session and the turn that started each; lives as long as the session."""

    terminals: Terminals
    log: logging.Logger
    _turn_of: dict[str, str] = field(factory=dict, init=False)

    def own(self, terminal_id: str, turn_id: str) -> None:
        """Enter a terminal that this session started."""
        self._turn_of[terminal_id] = turn_id

    def check(self, terminal_id: str) -> str:
        """The id back where it is ours; raises `UnknownTerminalError` else, before anybody is asked."""
        if terminal_id not in self._turn_of:
            raise UnknownTerminalError(terminal_id)
        return terminal_id

    async def release(self, terminal_id: str) -> None:
        """Release one of ours; it is forgotten even where the other side fails."""
        self._turn_of.pop(self.check(terminal_id), None)
        await self.terminals.release(terminal_id)

    async def release_surely(self, terminal_id: str) -> None:
        """As `release`, for clean-up: not cancelled from outside, bounded, and a failure is only logged."""
        with anyio.move_on_after(RELEASE_LIMIT_S, shield=True):
            try:
                await self.release(terminal_id)
            except PunieError as error:
                self.log.info("releasing terminal %s: %s", terminal_id, error)

    async def release_turn(self, turn_id: str) -> None:
        """Release what one turn started and left running, all at once."""
        await self._release_all([terminal for terminal, turn in self._turn_of.items() if turn == turn_id])

    async def release_everything(self) -> None:
        """Release what is left when the session ends, all at once."""
        await self._release_all(list(self._turn_of))

    async def _release_all(self, terminal_ids: list[str]) -> None:
        if not terminal_ids:
            return
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                for terminal_id in terminal_ids:
                    tasks.start_soon(self.release_surely, terminal_id)
