"""Notes that a writer puts into its own chain of the audit trail: the heads of the other chains, and what it deleted.

A note is a row like any other, sealed with its chain. So who removes, cuts off or writes anew the chain of one writer,
with its seal, contradicts the chains of the others; and who deletes rows early has no note of this machine's own that
says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from attrs import frozen

from punie.adapters.storage.sql import Sql
from punie.domain.values.json_value import array_in, object_in

DAY_S = 24 * 3600.0

AGAIN_S = 3_600.0
"""How long after its last note a process that still writes makes the next one."""

SET_BACK_S = DAY_S
"""How far the clock may have been set back since rows were deleted."""

LAST = 2**63 - 1
NOTED_HEADS = 100
"""The heads in one note: of the chains that changed last."""

_BEGIN = '{"anchors":'
NOTES = f"{_BEGIN}%"
"""The pattern of the text of a note; a decision's text begins otherwise."""


def note(database: Sql, writer: str, now: float, days: int, gone: Mapping[str, int]) -> Sequence[str]:
    """The text of the note to write, if there is anything to note; `gone` has the last deleted row by writer."""
    query = "SELECT writer, last, head FROM audit_seal WHERE writer <> ? AND last > 0 ORDER BY changed DESC LIMIT ?"
    anchors = {other: [last, head] for other, last, head in database.run(query, (writer, NOTED_HEADS))}
    if not anchors and not gone:
        return ()
    said = {"anchors": anchors, "at": now, "days": days, "deleted": dict(gone)}
    return (json.dumps(said, sort_keys=True, separators=(",", ":")),)


@frozen
class Age:
    """How old rows are, as far as one machine can tell by its own notes, which its key seals.

    Rows from before `until` may have been deleted. Rows behind the number in `seen`, by writer, were written later.
    """

    until: float
    seen: Mapping[str, int]

    @classmethod
    def told_by(cls, database: Sql, writer: str, until: float) -> Age:
        """The ages as that writer noted them; `until` is that of the present setting.

        A note says until when its process deleted rows of all chains. Whether it did does not matter: a note that says
        so may be deleted for its age as well.
        """
        notes = [(_number(told.get("at")), told) for _, told in _notes(database, "AND writer = ?", writer)]
        until = max([until, *(at - _number(told.get("days")) * DAY_S for at, told in notes)])
        seen = dict[str, int]()
        for at, told in notes:
            if at > until + SET_BACK_S:
                for other, anchor in object_in(told.get("anchors")).items():
                    number = int(_number(next(iter(array_in(anchor)), None)))
                    seen[other] = min(number, seen.get(other, number))
        return cls(until, seen)

    def early(self, database: Sql, writer: str) -> str | None:
        """The fault of rows of that chain that were deleted too early."""
        query = "SELECT min(number) FROM audit_pruned WHERE writer = ? AND (at > ? OR number > ?)"
        values = (writer, self.until + SET_BACK_S, self.seen.get(writer, LAST))
        ((number,),) = database.run(query, values)
        return None if number is None else f"row {number} was deleted before its time: see audit.keep_days"


def faults(database: Sql) -> Mapping[str, str]:
    """The writers whose chains do not hold what others noted of them, with the fault in words."""
    latest: dict[tuple[str, str], tuple[int, str]] = {}
    for noter, told in _notes(database):
        for writer, head in object_in(told.get("anchors")).items():
            match head:
                case [int(number), str(hashed)] if number >= latest.get((noter, writer), (0, ""))[0]:
                    latest[noter, writer] = number, hashed
                case _:
                    pass
    found: dict[str, str] = {}
    for (noter, writer), (number, hashed) in latest.items():
        if not _has(database, writer, number, hashed):
            there = database.run("SELECT 1 FROM audit WHERE writer = ? LIMIT 1", (writer,))
            what = f"row {number} is not the one" if there else f"it is missing: row {number} is one"
            found[writer] = f"{what} that {noter or 'the other chain'} noted; it was cut off, removed or written anew"
    return found


def _has(database: Sql, writer: str, number: int, hashed: str) -> bool:
    tables = ("audit", "audit_pruned")
    query = " UNION ".join(f"SELECT 1 FROM {table} WHERE writer = ? AND number = ? AND hash = ?" for table in tables)  # noqa: S608 - our own words
    return bool(database.run(query, (writer, number, hashed) * 2))


def _notes(database: Sql, whose: str = "", *values: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    query = f"SELECT writer, text FROM audit WHERE text LIKE ? {whose} ORDER BY number"  # noqa: S608 - our own words
    for writer, text in database.run(query, (NOTES, *values)):
        try:
            yield writer, object_in(json.loads(text))
        except (ValueError, RecursionError):
            continue  # it was tampered with, which its hash shows


def _number(value: object) -> float:
    return float(cast("Any", value)) if isinstance(value, (int, float)) and abs(value) < 2**53 else 0.0
