"""Records as rows of the database, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from punie.domain.model.usage import Usage
from punie.domain.session.records import CallRecord, TurnRecord
from punie.domain.tools.tool import ToolOutcome

CALL_COLUMNS = tuple(field.name for field in attrs.fields(CallRecord))
USAGE_COLUMNS = tuple(field.name for field in attrs.fields(Usage))
TURN_COLUMNS = (*(field.name for field in attrs.fields(TurnRecord) if field.name != "usage"), *USAGE_COLUMNS)


def insert_of(table: str, columns: Sequence[str]) -> str:
    """The statement that adds a row; one with a key that is there already changes nothing."""
    marks = ", ".join("?" for _ in columns)
    return f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - our own words


def call_row(record: CallRecord) -> tuple[Any, ...]:
    """The values of `CALL_COLUMNS`."""
    row = attrs.asdict(record, recurse=False)
    return tuple(record.outcome.value if name == "outcome" else row[name] for name in CALL_COLUMNS)


def call_of(row: Sequence[Any]) -> CallRecord:
    """The record of a row of `CALL_COLUMNS`."""
    values = dict(zip(CALL_COLUMNS, row, strict=True))
    values["outcome"] = ToolOutcome(values["outcome"])
    return CallRecord(**values)


def turn_row(record: TurnRecord) -> tuple[Any, ...]:
    """The values of `TURN_COLUMNS`."""
    row = attrs.asdict(record, recurse=False) | attrs.asdict(record.usage)
    return tuple(row[name] for name in TURN_COLUMNS)


def turn_of(row: Sequence[Any]) -> TurnRecord:
    """The record of a row of `TURN_COLUMNS`."""
    values = dict(zip(TURN_COLUMNS, row, strict=True))
    usage = Usage(**{name: values.pop(name) for name in USAGE_COLUMNS})
    return TurnRecord(**values, usage=usage)
