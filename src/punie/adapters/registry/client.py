"""A registry of the public one's API (v0.1), asked for what it knows of servers. Everything it says is untrusted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import quote, urlencode

import anyio
from attrs import frozen

from punie.adapters.registry.fetching import FetchError, fetch_text, shown

PAGE: Final = 100
MOST_PAGES: Final = 20
LONGEST_CURSOR: Final = 2_000
SEARCH_LIMIT_S: Final = 30.0


@frozen
class RegistryClient:
    """Asks the registry at `base`, an address without a slash at its end; keeps nothing between questions."""

    base: str

    async def search(self, query: str, limit: int) -> tuple[object, ...]:
        """At most that many entries whose names have that text in them, in the registry's order, as it gave them.

        Raises `FetchError`. It ends where the registry repeats itself, and after 20 pages.
        """
        found: list[object] = []
        cursor: str | None = None
        seen: set[str] = set()
        try:
            with anyio.fail_after(SEARCH_LIMIT_S):
                for _ in range(MOST_PAGES):
                    page, cursor = await self._page(query, min(limit - len(found), PAGE), cursor)
                    found += page
                    if len(found) >= limit or cursor is None or cursor in seen:
                        break
                    seen.add(cursor)
        except TimeoutError:
            raise FetchError(f"{shown(self.base)} did not answer within {SEARCH_LIMIT_S:g} s") from None
        return tuple(found[:limit])

    async def latest(self, name: str) -> str:
        """The newest version's description of the server of that name. Raises `FetchError`."""
        return await fetch_text(f"{self.base}/v0.1/servers/{quote(name, safe='')}/versions/latest")

    async def _page(self, query: str, limit: int, cursor: str | None) -> tuple[list[object], str | None]:
        asked = {"search": query, "limit": str(limit), "version": "latest"}
        if cursor is not None:
            asked["cursor"] = cursor
        answer = await fetch_text(f"{self.base}/v0.1/servers?{urlencode(asked)}")
        try:
            parsed: object = json.loads(answer)
        except (ValueError, RecursionError) as error:
            raise FetchError(f"{shown(self.base)} did not answer as a registry does: {error}") from error
        fields = _object(parsed)
        servers, onward = fields.get("servers"), _object(fields.get("metadata")).get("nextCursor")
        if not isinstance(servers, list):
            raise FetchError(f"{shown(self.base)} did not answer as a registry does: it names no servers")
        if not isinstance(onward, str) or not 0 < len(onward) <= LONGEST_CURSOR:
            onward = None
        return cast("list[object]", servers), onward


def _object(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}
