"""`--continue` and `--session`: the session that a command at a terminal goes on with."""

from __future__ import annotations

from punie.application.agent import PunieAgent
from punie.commands.flags import LAST
from punie.commands.running import CommandError
from punie.domain.session.log import SessionSummary
from punie.domain.values.display import display_exact, one_line

SHORTEST_PREFIX = 6
"""The characters of an id that at least have to be given."""


async def session_to_go_on(agent: PunieAgent, given: str, directories: tuple[str, ...]) -> str:
    """The id of the session that was named: by its id, by how that begins, or as the last one of the directories.

    Raises `CommandError` where there is none, or more than one begins so, and `SessionStoreError`.
    """
    if given == LAST:
        found = [summary for cwd in directories for summary in await _of(agent, cwd) if summary.turns]
        if found:
            return max(found, key=lambda summary: summary.updated_at).id
        where = display_exact(directories[0])
        raise CommandError(f"no session of {where} is stored. `punie sessions list` shows those of other directories.")
    if len(given) < SHORTEST_PREFIX:
        return given
    alike = {summary.id for summary in await _of(agent, None) if summary.id.startswith((given, f"sess_{given}"))}
    if len(alike) > 1 and given not in alike:
        raise CommandError(f"{len(alike)} sessions begin with {one_line(given, 80)}. `punie sessions list` shows them.")
    return given if given in alike or not alike else alike.pop()


async def _of(agent: PunieAgent, cwd: str | None) -> list[SessionSummary]:
    """All stored sessions of a directory, or of all directories for None."""
    found, cursor = list[SessionSummary](), None
    while True:
        page = await agent.sessions(cwd, cursor)
        found += page.sessions
        cursor = page.next_cursor
        if cursor is None:
            return found
