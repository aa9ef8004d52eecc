"""The stored session that a person means: by its id, by how that begins, or the last one."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

from punie.domain.session.log import SessionSummary
from punie.domain.values.display import one_line
from punie.ports.sessions import SessionStore

SHORTEST_PREFIX = 6
PAGE = 500
LAST = "last"


async def found_session(store: SessionStore, given: str) -> SessionSummary | None:
    """The session of that id, or the one whose id begins so; says on stderr why there is none."""
    exact = await store.summary(given)
    if exact is not None:
        return exact
    shown = one_line(given, 80)
    if len(given) < SHORTEST_PREFIX:
        what = f"there is no session {shown}, and {SHORTEST_PREFIX} characters of an id are the fewest that will do"
    else:
        ways = (given, f"sess_{given}")
        alike = [summary async for summary in sessions_of(store, None) if summary.id.startswith(ways)]
        if len(alike) == 1:
            return alike[0]
        what = f"{len(alike)} sessions begin with {shown}" if alike else f"there is no session {shown}"
    sys.stderr.write(f"punie: {what}. Nothing was done; `punie sessions list` shows the ids.\n")
    return None


async def last_session(store: SessionStore) -> SessionSummary | None:
    """The session that was changed last, wherever it works; says on stderr where there is none."""
    page = await store.sessions(None, None, 1)
    if page.sessions:
        return page.sessions[0]
    sys.stderr.write("punie: no session is stored yet. Nothing was done.\n")
    return None


async def sessions_of(store: SessionStore, cwd: str | None) -> AsyncIterator[SessionSummary]:
    """All of one directory, or of all, the latest change first."""
    cursor = None
    while True:
        page = await store.sessions(cwd, cursor, PAGE)
        for summary in page.sessions:
            yield summary
        cursor = page.next_cursor
        if cursor is None:
            return
