"""A usage report for people, spreadsheets and programs."""

from __future__ import annotations

import csv
import io
import json
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

from attrs import frozen

from punie.adapters.console.output import WIDTH, table
from punie.commands.usage.report import CallTotals, TurnTotals, UsageReport
from punie.domain.values.display import one_line

Row: TypeAlias = Mapping[str, object]


class Table(StrEnum):
    """By what the figures are added up."""

    TOOL = "tool"
    SESSION = "session"
    MODEL = "model"
    DAY = "day"


def usage_json(report: UsageReport) -> str:
    """The whole report as one JSON object, on one line."""
    keys = {"byTool": Table.TOOL, "byModel": Table.MODEL, "bySession": Table.SESSION, "byDay": Table.DAY}
    unused = [{"tool": idle.tool, "source": idle.source, "tokens": idle.tokens} for idle in report.unused]
    tables: dict[str, object] = {key: _rows(report, by) for key, by in keys.items()}
    return json.dumps({**tables, "unused": unused}, ensure_ascii=False)


def usage_csv(report: UsageReport, by: Table) -> str:
    """One table with a header line; a cell that a spreadsheet would take for a formula begins with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    rows = _rows(report, by)
    writer.writerow(_COLUMNS[by])
    writer.writerows([_cell(row[key]) for key in _COLUMNS[by]] for row in rows)
    return text.getvalue()


def usage_text(report: UsageReport, by: Table) -> str:
    """One table under a line of sums, at most 80 columns wide, safe to show."""
    lines = [_sums(report), ""]
    columns = _SHOWN[by]
    rows = [[column.shown(row) for column in columns] for row in _rows(report, by)]
    return "\n".join([*lines, *_aligned([column.title for column in columns], rows)]) + "\n"


def unused_text(report: UsageReport, disabled: Iterable[str], settings_file: str) -> str:
    """Which tools were not used, what they cost, and how they are left out; empty where all were used."""
    if not report.unused:
        return ""
    names = [idle.tool for idle in report.unused]
    tokens = sum(idle.tokens for idle in report.unused)
    listed = ", ".join(json.dumps(name) for name in [*sorted(set(disabled) - set(names)), *names])
    rows = [[idle.tool, idle.source, idle.tokens] for idle in report.unused]
    lines = [
        "Never called here, yet described to the model at each request:",
        f"about {tokens:,} tokens, an estimate.",
        "",
        table(["TOOL", "SOURCE", "TOKENS"], rows),
        "To leave them out, run `punie usage --disable NAME...`, or write into",
        f"{one_line(settings_file, 1000)}:",
        "",
        "[tools]",
        "disabled = [",
        *textwrap.wrap(f"{listed},", WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False),
        "]",
    ]
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------------------------------------------------------- rows

_CALL_KEYS = ("calls", "succeeded", "failed", "denied", "cancelled", "timeMs", "bytesIn", "bytesOut")
_PERIOD_KEYS = (*_CALL_KEYS, "turns", "requests", "inputTokens", "outputTokens", "cost")
_COLUMNS: Mapping[Table, tuple[str, ...]] = {
    Table.TOOL: ("tool", "source", *_CALL_KEYS),
    Table.SESSION: ("sessionId", *_PERIOD_KEYS),
    Table.MODEL: ("model", "turns", "requests", "inputTokens", "outputTokens", "cost"),
    Table.DAY: ("day", *_PERIOD_KEYS),
}


def _rows(report: UsageReport, by: Table) -> list[Row]:
    match by:
        case Table.TOOL:
            return [{"tool": row.tool, "source": row.source, **_calls(row.calls)} for row in report.by_tool]
        case Table.MODEL:
            return [{"model": row.model, **_turns(row.turns)} for row in report.by_model]
        case Table.SESSION:
            return [{"sessionId": row.name, **_calls(row.calls), **_turns(row.turns)} for row in report.by_session]
        case Table.DAY:
            return [{"day": row.name, **_calls(row.calls), **_turns(row.turns)} for row in report.by_day]


def _calls(totals: CallTotals) -> Row:
    return {
        "calls": totals.calls,
        "succeeded": totals.succeeded,
        "failed": totals.failed,
        "denied": totals.denied,
        "cancelled": totals.cancelled,
        "timeMs": round(totals.time_ms, 1),
        "bytesIn": totals.bytes_in,
        "bytesOut": totals.bytes_out,
    }


def _turns(totals: TurnTotals) -> Row:
    return {
        "turns": totals.turns,
        "requests": totals.requests,
        "inputTokens": totals.input_tokens,
        "outputTokens": totals.output_tokens,
        "cost": None if totals.cost_usd is None else round(totals.cost_usd, 6),
    }


def _cell(value: object) -> object:
    if isinstance(value, str):
        line = one_line(value, 1000)
        return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line
    return "" if value is None else value


# ---------------------------------------------------------------------------------------------------------------- text


@frozen
class _Column:
    """A column as people read it: its title, the key of its value, and the form of numbers."""

    title: str
    key: str
    form: str = "count"

    def shown(self, row: Row) -> str:
        value = row[self.key]
        if not isinstance(value, (int, float)):
            return "-" if value is None else one_line(str(value), WIDTH)
        match self.form:
            case "time":
                return _time(value)
            case "bytes":
                return _bytes(value)
            case "tokens" if value >= 1_000_000:
                return f"{value / 1_000_000:,.1f}M"
            case "cost":
                return f"${value:,.4f}"
            case _:
                return f"{value:,}"


_OUTCOMES = (
    _Column("CALLS", "calls"),
    _Column("OK", "succeeded"),
    _Column("FAILED", "failed"),
    _Column("DENIED", "denied"),
    _Column("STOPPED", "cancelled"),
    _Column("TIME", "timeMs", "time"),
)
_TOKENS = (
    _Column("IN TOK", "inputTokens", "tokens"),
    _Column("OUT TOK", "outputTokens", "tokens"),
    _Column("COST", "cost", "cost"),
)
_SHOWN: Mapping[Table, tuple[_Column, ...]] = {
    Table.TOOL: (
        _Column("TOOL", "tool"),
        *_OUTCOMES,
        _Column("IN", "bytesIn", "bytes"),
        _Column("OUT", "bytesOut", "bytes"),
    ),
    Table.SESSION: (_Column("SESSION", "sessionId"), *_OUTCOMES, *_TOKENS[:2]),
    Table.MODEL: (_Column("MODEL", "model"), _Column("TURNS", "turns"), _Column("REQUESTS", "requests"), *_TOKENS),
    Table.DAY: (_Column("DAY", "day"), *_OUTCOMES, *_TOKENS),
}


def _sums(report: UsageReport) -> str:
    turns = report.turns
    parts = [_counted(report.calls.calls, "call"), _counted(turns.turns, "turn")]
    if turns.input_tokens or turns.output_tokens:
        parts.append(f"{turns.input_tokens:,} tokens in and {turns.output_tokens:,} out")
    if turns.cost_usd is not None:
        parts.append(f"${turns.cost_usd:,.4f}")
    return ", ".join(parts)


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def _aligned(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The first column left, as wide as the others leave it; numbers right."""
    widths = [max(_width(cell) for cell in column) for column in zip(titles, *rows, strict=True)]
    first = max(8, min(widths[0], WIDTH - sum(widths[1:]) - len(widths) + 1))
    lines: list[str] = []
    for head, *rest in (titles, *rows):
        name = _cut(head, first)
        cells = (" " * (width - _width(cell)) + cell for cell, width in zip(rest, widths[1:], strict=True))
        lines.append(" ".join([name + " " * (first - _width(name)), *cells]))
    return lines


def _width(text: str) -> int:
    """How many columns a terminal takes for it."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1
        for char in text
    )


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    while _width(text) >= width:
        text = text[:-1]
    return f"{text}…"


def _time(ms: float) -> str:
    if ms < 1_000:
        return f"{ms:.0f} ms"
    return f"{ms / 1_000:.1f} s" if ms < 600_000 else f"{ms / 60_000:,.0f} min"


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1_000:
            return f"{size:.0f} {unit}"
        size /= 1_000
    return f"{size:,.0f} GB"
