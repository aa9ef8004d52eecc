"""Where a page of the list of sessions ends: kept in the client's hand, so nothing is kept here."""

from __future__ import annotations

import base64
import binascii
import json
from typing import cast

from attrs import frozen

from punie.adapters.storage.sessions.event_codec import is_moment


@frozen
class Place:
    """The list is as it was at `as_of`, the moment of its latest change; the page before ended with `id`, at `at`."""

    as_of: float
    at: float
    id: str

    def cursor(self) -> str:
        """The place as a client carries it."""
        return base64.urlsafe_b64encode(json.dumps([self.as_of, self.at, self.id]).encode()).decode("ascii")


def place_of(cursor: str) -> Place:
    """The place again. Raises `ValueError` for what is none of ours."""
    try:
        told = cast("object", json.loads(base64.b64decode(cursor.encode(), altchars=b"-_", validate=True)))
    except (ValueError, binascii.Error, RecursionError):
        raise ValueError("that is no cursor of this list; begin again without one") from None
    parts = cast("list[object]", told) if isinstance(told, list) else []
    if len(parts) != 3 or not (is_moment(parts[0]) and is_moment(parts[1]) and isinstance(parts[2], str)):
        raise ValueError("that is no cursor of this list; begin again without one")
    as_of, at, session_id = cast("tuple[float, float, str]", parts)
    return Place(float(as_of), float(at), session_id)
