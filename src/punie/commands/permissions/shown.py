"""Stored grants and the audit trail for people and programs (INTERFACES.md section 1)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from punie.adapters.console.tables import table
from punie.domain.permission.audit import AuditRow, ChainReport
from punie.domain.permission.grants import StoredGrant
from punie.domain.values.display import display_safe, one_line

_NAMES = {
    "session_id": "sessionId", "call_id": "callId", "answered_by": "answeredBy", "arguments_digest": "argumentsDigest",
}  # fmt: skip


def grants_json(grants: Sequence[StoredGrant]) -> str:
    """The grants as one JSON list, on one line."""
    rows = [
        {
            "id": grant.id,
            "tool": grant.tool,
            "scope": grant.scope,
            "directory": grant.directory,
            "createdAt": moment(grant.created_at),
            "expiresAt": moment(grant.expires_at),
        }
        for grant in grants
    ]
    return json.dumps(rows)


def grants_text(grants: Sequence[StoredGrant]) -> str:
    """A block a grant: a scope is shown whole."""
    if not grants:
        return 'Nothing is granted for good. "Always allow" in a permission question stores a grant.\n'
    blocks = [
        f"{one_line(grant.id)}  {one_line(grant.tool)}  until {_day(grant.expires_at)}\n"
        f"    {one_line(grant.scope, 1_000)}\n"
        for grant in grants
    ]
    return "".join(blocks)


def audit_json(rows: Sequence[AuditRow]) -> str:
    """The rows as one JSON list, on one line."""
    return json.dumps([_named(row) for row in rows])


def audit_text(rows: Sequence[AuditRow]) -> str:
    """A line a decision."""
    if not rows:
        return "No decision was written down yet.\n"
    named = [{"title": row.text, **_named(row)} for row in rows]
    columns = ("at", "verdict", "answeredBy", "tool", "rule", "title")
    return table(columns, [[one_line(str(row.get(name, "")), 60) for name in columns] for row in named])


def report_json(report: ChainReport) -> str:
    """What came of looking through the chain as one JSON object, on one line."""
    return json.dumps({"ok": report.fault is None, "rows": report.rows, "head": report.head, "fault": report.fault})


def report_text(report: ChainReport) -> str:
    """The same in a sentence."""
    if report.fault is not None:
        return f"The audit trail was tampered with: {display_safe(report.fault)}. {report.rows} rows before it fit.\n"
    if not report.rows:
        return "No decision was written down yet.\n"
    return (
        f"{report.rows} rows, none changed, none missing. The hash of the last, to compare with later: {report.head}\n"
    )


def moment(seconds: float) -> str:
    """The moment in UTC, as 2026-11-22T01:02:03Z; one that no calendar has is shown as it is."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):
        return str(seconds)


def _day(seconds: float) -> str:
    return moment(seconds)[:10]


def _named(row: AuditRow) -> Mapping[str, object]:
    """The row by the names that programs see; a text that somebody spoilt stands alone."""
    link: dict[str, object] = {"number": row.number, "previous": row.previous, "hash": row.hash}
    try:
        record: object = json.loads(row.text)
    except ValueError:
        return {**link, "text": row.text}
    if not isinstance(record, dict):
        return {**link, "text": row.text}
    values = {_NAMES.get(name, name): value for name, value in cast("dict[str, object]", record).items()}
    at = values.get("at")
    return {**link, **values, "at": moment(at) if isinstance(at, (int, float)) else at}
