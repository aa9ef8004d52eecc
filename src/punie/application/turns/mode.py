"""The mode of one session, switched by the client or by the agent's own request (issue 4, section 7)."""

from __future__ import annotations

from attrs import frozen

from punie.application.desk.permission import SessionPermission
from punie.application.offer.registry import ToolRegistry
from punie.application.tools.switch_mode import SWITCH_MODE, SwitchMode
from punie.domain.permission.modes import Mode
from punie.domain.session.events import ModeChanged
from punie.ports.engine import EventSink


@frozen
class SessionMode:
    """Keeps policy, tools and client in step; lives as long as its session."""

    permission: SessionPermission
    registry: ToolRegistry
    events: EventSink

    @property
    def current(self) -> Mode:
        """The mode of this moment."""
        return self.permission.policy.mode

    def begin(self) -> None:
        """The session opened: offer what its mode offers."""
        self._offer_the_way_out()

    async def switch(self, mode: Mode) -> None:
        """Decide in that mode from now on, and tell the client; nothing happens where it is the mode already."""
        if mode is self.current:
            return
        self.permission.switch(mode)
        self._offer_the_way_out()
        await self.events.emit(ModeChanged(mode))

    def _offer_the_way_out(self) -> None:
        """The tool that asks to leave read-only is there only then: in any other mode it would cost and say nothing."""
        taken = any(tool.name == SWITCH_MODE for tool in self.registry.tools)
        if self.current is not Mode.READ_ONLY:
            if taken and isinstance(self.registry.get(SWITCH_MODE), SwitchMode):
                self.registry.unregister(SWITCH_MODE)
        elif not taken:
            self.registry.register(SwitchMode.DESCRIPTOR, lambda _services: SwitchMode(self.switch))
