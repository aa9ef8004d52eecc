"""The files of the project that a person may mention, as completion offers them."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice

from anyio.abc import TaskGroup
from attrs import define, field

from punie.application.turns.live_session import LiveSession
from punie.commands.mentions import as_mention, project_files

FRESH_S = 20.0
"""Files are listed again where the list is older."""

OFFERED = 40


@define(eq=False)
class MentionedFiles:
    """The names of the project's files, listed when they are first asked for; lives as long as the conversation.

    `changed` is called when there are other names than before.
    """

    live: Callable[[], LiveSession | None]
    tasks: TaskGroup
    changed: Callable[[], None]
    _names: tuple[str, ...] = field(default=(), init=False)
    _looked_s: float = field(default=float("-inf"), init=False)

    def like(self, typed: str) -> list[str]:
        """The mentions of files whose name begins with the text, then of those that have it anywhere."""
        now_s = time.monotonic()
        if now_s - self._looked_s > FRESH_S:
            self._looked_s = now_s
            self.tasks.start_soon(self._look)
        wanted = typed.lower()
        begin = [name for name in self._names if name.lower().startswith(wanted)]
        others = (name for name in self._names if wanted in name.lower() and not name.lower().startswith(wanted))
        return [as_mention(name) for name in islice((*begin, *others), OFFERED)]

    async def _look(self) -> None:
        live = self.live()
        names = () if live is None else await project_files(live)
        if names != self._names:
            self._names = names
            self.changed()
