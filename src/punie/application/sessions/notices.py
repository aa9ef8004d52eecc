"""What a person should know of a session beside the conversation (ACP, notices): once each, and never too early."""

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
"""Says something to a person: what is the matter, and the details. Returns at once."""


def unheard(_title: str, _details: str) -> None:
    """Nobody listens."""


@define
class SessionNotices:
    """Lives as long as its session, whose task runs `keep`. What there is to say waits until the client knows it."""

    events: EventSink
    _said: set[NoticeGiven] = field(factory=set[NoticeGiven], init=False)
    _waiting: list[NoticeGiven] = field(factory=list[NoticeGiven], init=False)
    _known: anyio.Event = field(factory=anyio.Event, init=False)
    _news: anyio.Event = field(factory=anyio.Event, init=False)

    def warn(self, title: str, details: str = "") -> None:
        """Say it, unless it was said already; returns at once. Texts of strangers are made safe and cut."""
        more = one_line(details, DESCRIPTION_CHARS) or None
        notice = NoticeGiven(NoticeSeverity.WARNING, one_line(title, TITLE_CHARS), more)
        if notice not in self._said and len(self._said) < KNOWN_LIMIT and len(self._waiting) < WAITING_LIMIT:
            self._said.add(notice)
            self._waiting.append(notice)
            self._news.set()

    def greet(self) -> None:
        """The client knows the session now."""
        self._known.set()

    async def keep(self) -> None:
        """Tell the client what there is to say, as soon as it knows the session; until cancelled."""
        await self._known.wait()
        while True:
            while self._waiting:
                await self.events.emit(self._waiting.pop(0))
            self._news = anyio.Event()
            await self._news.wait()
