"""A turn that is carried on by the server, whoever waits for its answer."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from attrs import define, field

from punie.application.turns.run_turn import PromptTurn
from punie.domain.session.turn import StopReason, TurnReport
from punie.ports.agent import RunningTurn


@define(eq=False)
class CarriedTurn(RunningTurn):
    """`run` waits for the end of `carry`, a task of the server.

    `lost` says whether the connection that asked is gone: a wait that ends with it leaves the turn alone, any other
    that is cancelled was a request to stop. `unheard` is told how a turn ended that nobody waited for any more.
    """

    turn: PromptTurn
    lost: Callable[[], bool]
    unheard: Callable[[TurnReport | Exception], None]
    id: str = field(init=False)
    _over: anyio.Event = field(factory=anyio.Event, init=False)
    _end: TurnReport | Exception = field(factory=lambda: TurnReport(StopReason.CANCELLED), init=False)

    def __attrs_post_init__(self) -> None:
        self.id = self.turn.id

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._over.is_set()

    async def carry(self) -> None:
        """Do the work; never raises what the turn raises."""
        try:
            self._end = await self.turn.run()
        except Exception as error:  # noqa: BLE001 - handed to whoever waits; the server's other turns go on
            self._end = error
        finally:
            self._over.set()
        if self.lost():
            self.unheard(self._end)

    async def run(self) -> TurnReport:
        try:
            await self._over.wait()
        except BaseException:
            if not self.lost():
                self.turn.cancel()
                with anyio.CancelScope(shield=True):
                    await self._over.wait()
            raise
        if isinstance(self._end, Exception):
            raise self._end
        return self._end
