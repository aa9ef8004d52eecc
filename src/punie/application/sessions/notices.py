"""Notices to a person beside the conversation (ACP, notices), once each and not before the client knows the session."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import anyio
from attrs import define, field

from punie.domain.session.events import NoticeGiven, NoticeSeverity
from punie.domain.values.display import one_line
from punie.ports.engine import EventSink

WAITING_LIMIT = 20
KNOWN_LIMIT = 200
TITLE_CHARS = 160
DESCRIPTION_CHARS = 600

Warn: TypeAlias = Callable[[str, str], None]
"""Tells a person of a problem: a title and the details. Returns at once."""


def unheard(_title: str, _details: str) -> None:
    """Tell no one."""


@define
class SessionNotices:
    """The notices of one session; lives as long as the session, whose task group runs `keep`."""

    events: EventSink
    _said: set[NoticeGiven] = field(factory=set[NoticeGiven], init=False)
    _waiting: list[NoticeGiven] = field(factory=list[NoticeGiven], init=False)
    _known: anyio.Event = field(factory=anyio.Event, init=False)
    _news: anyio.Event = field(factory=anyio.Event, init=False)

    def warn(self, title: str, details: str = "") -> None:
        """Give the notice, unless the same one was given before; returns at once. Texts are made safe and cut."""
        more = one_line(details, DESCRIPTION_CHARS) or None
        notice = NoticeGiven(NoticeSeverity.WARNING, one_line(title, TITLE_CHARS), more)
        if notice not in self._said and len(self._said) < KNOWN_LIMIT and len(self._waiting) < WAITING_LIMIT:
            self._said.add(notice)
            self._waiting.append(notice)
            self._news.set()

    def greet(self) -> None:
        """The client knows the session now: notices that waited may go."""
        self._known.set()

    async def keep(self) -> None:
        """Send notices as they come, once the client knows the session; until cancelled."""
        await self._known.wait()
        while True:
            while self._waiting:
                await self.events.emit(self._waiting.pop(0))
            self._news = anyio.Event()
            await self._news.wait()
