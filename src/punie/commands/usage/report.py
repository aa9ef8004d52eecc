"""The use of tools and models: sums by tool, session, model and day, and the tools that were never used.

A report is shown to a person as a table, to a spreadsheet as CSV, and to a program as JSON.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import TypeAlias, TypeVar

from attrs import asdict, frozen

from punie.adapters.console.output import WIDTH, table, wrapped
from punie.domain.session.turn import CallRecord, TurnRecord, Usage
from punie.domain.tools.execution import OutcomeCounts, by_outcome
from punie.domain.tools.tool import ToolDescriptor
from punie.domain.values.display import counted, one_line
from punie.domain.values.json_value import camel

_Key = TypeVar("_Key", bound=Hashable)
_Record = TypeVar("_Record", CallRecord, TurnRecord)

DayOf: TypeAlias = Callable[[float], str]
"""The day, as 2026-11-22, of seconds since the epoch."""

Offered: TypeAlias = tuple[ToolDescriptor, int]
"""A tool, and its tokens at each request."""


@frozen
class CallTotals(OutcomeCounts):
    """Calls by outcome; `time_ms` is without the time of a person's answers, bytes are those that the model saw."""

    time_ms: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0

    @classmethod
    def of(cls, calls: Sequence[CallRecord]) -> CallTotals:
        """The sums over these calls."""
        return cls(
            **by_outcome(call.outcome for call in calls),
            time_ms=sum(call.elapsed_ms for call in calls),
            bytes_in=sum(call.bytes_in for call in calls),
            bytes_out=sum(call.bytes_out for call in calls),
        )


@frozen
class TurnTotals:
    """Turns and the models' figures; `cost_usd` is the sum of the known prices, None where no price is known."""

    turns: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    cached_tokens: int = 0

    @property
    def cached_share(self) -> float | None:
        """The part of the input that the provider had in its cache; None where nothing was sent."""
        return round(self.cached_tokens / self.input_tokens, 3) if self.input_tokens else None

    @classmethod
    def of(cls, turns: Sequence[TurnRecord]) -> TurnTotals:
        """The sums over these turns."""
        used = sum((turn.usage for turn in turns), Usage())
        sent, said, cached = used.input_tokens, used.output_tokens, used.cached_read_tokens
        return cls(len(turns), used.requests, sent, said, used.cost_usd, cached)


class Table(StrEnum):
    """The ways in which the figures are grouped."""

    TOOL = "tool"
    SESSION = "session"
    MODEL = "model"
    DAY = "day"
    PERSON = "person"
    PROJECT = "project"


@frozen
class UsageRow:
    """The sums of one tool, session (by its id), day (as 2026-11-22), model, person or project (a directory).

    `source` is a tool's; a tool has no turns, and a model, a person and a project have no calls.
    """

    name: str
    calls: CallTotals = CallTotals()
    turns: TurnTotals = TurnTotals()
    source: str = ""


@frozen
class UnusedTool:
    """A tool that is offered and was not called; `tokens` estimates what it costs, as `punie tools tokens` does."""

    tool: str
    source: str
    tokens: int


@frozen
class UsageReport:
    """The sums over one period. Tools and models by how much they were used, sessions and days from old to new.

    `broke` counts the requests that began otherwise than the ones before them, by what differed and whose doing it was.
    """

    calls: CallTotals
    turns: TurnTotals
    by: Mapping[Table, Sequence[UsageRow]]
    unused: tuple[UnusedTool, ...]
    broke: Mapping[tuple[str, str], int]

    @property
    def empty(self) -> bool:
        """Whether nothing was recorded."""
        return self.calls.calls == 0 and self.turns.turns == 0


def usage_report(
    calls: Sequence[CallRecord], turns: Sequence[TurnRecord], offered: Iterable[Offered], day_of: DayOf
) -> UsageReport:
    """Add up the records. `offered` are the tools that a session would have; those without a call are unused."""
    tools = _grouped(calls, lambda call: (call.tool, call.source))
    by_tool = [UsageRow(tool, CallTotals.of(some), source=source) for (tool, source), some in tools.items()]
    used = {tool for tool, _ in tools}
    idle = ((tool, tokens) for tool, tokens in offered if tool.name not in used)
    return UsageReport(
        calls=CallTotals.of(calls),
        turns=TurnTotals.of(turns),
        by={
            Table.TOOL: sorted(by_tool, key=lambda row: (-row.calls.calls, row.name, row.source)),
            Table.MODEL: _by_turns(turns, lambda turn: turn.model),
            Table.PERSON: _by_turns(turns, lambda turn: turn.person),
            Table.PROJECT: _by_turns(turns, lambda turn: turn.project),
            Table.SESSION: _periods(calls, turns, lambda record: record.session_id),
            Table.DAY: _periods(calls, turns, lambda record: day_of(record.started_at)),
        },
        unused=tuple(UnusedTool(tool.name, tool.source.value, tokens) for tool, tokens in idle),
        broke=dict(Counter((one.what, one.by) for turn in turns for one in turn.broke).most_common()),
    )


def _by_turns(turns: Sequence[TurnRecord], key: Callable[[TurnRecord], str]) -> list[UsageRow]:
    rows = (UsageRow(name, turns=TurnTotals.of(some)) for name, some in _grouped(turns, key).items())
    return sorted(rows, key=lambda row: (-row.turns.requests, row.name))


def _grouped(records: Iterable[_Record], key: Callable[[_Record], _Key]) -> Mapping[_Key, list[_Record]]:
    groups: dict[_Key, list[_Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def _periods(
    calls: Sequence[CallRecord], turns: Sequence[TurnRecord], key: Callable[[CallRecord | TurnRecord], str]
) -> list[UsageRow]:
    began: dict[str, float] = {}
    for record in (*calls, *turns):
        began[key(record)] = min(record.started_at, began.get(key(record), record.started_at))
    some_calls, some_turns = _grouped(calls, key), _grouped(turns, key)
    return [
        UsageRow(name, CallTotals.of(some_calls.get(name, [])), TurnTotals.of(some_turns.get(name, [])))
        for name in sorted(began, key=lambda name: (began[name], name))
    ]


Row: TypeAlias = Mapping[str, object]


def usage_json(report: UsageReport, budgets: Sequence[Row] = ()) -> str:
    """The whole report as one JSON object, on one line."""
    unused = [{"tool": idle.tool, "source": idle.source, "tokens": idle.tokens} for idle in report.unused]
    tables: dict[str, object] = {f"by{by.title()}": _rows(report, by) for by in Table}
    broke = [{"what": what, "by": by, "requests": count} for (what, by), count in report.broke.items()]
    more = {"unused": unused, "brokenPrefixes": broke, "budgets": budgets}
    return json.dumps({**tables, **more}, ensure_ascii=False)


def usage_csv(report: UsageReport, by: Table) -> str:
    """One table with a header line; a cell that a spreadsheet would take for a formula begins with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    rows = _rows(report, by)
    writer.writerow(_COLUMNS[by])
    writer.writerows([_cell(row[key]) for key in _COLUMNS[by]] for row in rows)
    return text.getvalue()


def usage_text(report: UsageReport, by: Table) -> str:
    """One table under a line of sums, as wide as the terminal, safe to show."""
    columns = _SHOWN[by]
    rows = [[column.shown(row) for column in columns] for row in _rows(report, by)]
    shown = table([column.title for column in columns], rows, figures=True)
    return f"{_sums(report)}\n\n{shown}{_broke_text(report)}"


BROKE_SHOWN = 10


def _broke_text(report: UsageReport) -> str:
    """The requests of which a provider's cache served less than it could, by the reasons; empty without any."""
    if not report.broke:
        return ""
    rows = [[count, f"{what} ({by})"] for (what, by), count in islice(report.broke.items(), BROKE_SHOWN)]
    head = "Requests that began otherwise than the one before, so that less came from cache:"
    return f"\n{head}\n\n{table(['REQUESTS', 'CHANGED, AND BY WHOM'], rows)}"


def unused_text(report: UsageReport, disabled: Iterable[str], settings_file: str) -> str:
    """The tools that were not used, their cost, and how to leave them out; empty where all were used."""
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
        *(f"    {line}" for line in wrapped(f"{listed},", WIDTH - 4)),
        "]",
    ]
    return "\n".join(lines) + "\n"


def _values(row: UsageRow) -> dict[str, object]:
    """The figures of a row under the names of its columns."""
    calls, turns = row.calls, row.turns
    cost = None if turns.cost_usd is None else round(turns.cost_usd, 6)
    figures = {"source": row.source, **camel(asdict(calls)), **camel(asdict(turns))}
    own = {"calls": calls.calls, "timeMs": round(calls.time_ms, 1), "cachedShare": turns.cached_share, "cost": cost}
    return {**figures, **own}


_CALL_KEYS = ("calls", "succeeded", "failed", "denied", "cancelled", "timeMs", "bytesIn", "bytesOut")
_TURN_KEYS = ("turns", "requests", "inputTokens", "outputTokens", "cost", "cachedTokens", "cachedShare")
_PERIOD_KEYS = (*_CALL_KEYS, *_TURN_KEYS)
_COLUMNS: Mapping[Table, tuple[str, ...]] = {
    Table.TOOL: ("tool", "source", *_CALL_KEYS),
    Table.SESSION: ("sessionId", *_PERIOD_KEYS),
    Table.DAY: ("day", *_PERIOD_KEYS),
    **{by: (by.value, *_TURN_KEYS) for by in (Table.MODEL, Table.PERSON, Table.PROJECT)},
}


def _rows(report: UsageReport, by: Table) -> list[Row]:
    name, *others = _COLUMNS[by]
    figures = ((row.name, _values(row)) for row in report.by[by])
    return [{name: of, **{key: values[key] for key in others}} for of, values in figures]


def _cell(value: object) -> object:
    if isinstance(value, str):
        line = one_line(value, 1000)
        return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line
    return "" if value is None else value


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
            case "share":
                return f"{value:.0%}"
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
_SHARE = _Column("CACHED", "cachedShare", "share")
_SHOWN: Mapping[Table, tuple[_Column, ...]] = {
    Table.TOOL: (
        _Column("TOOL", "tool"),
        *_OUTCOMES,
        _Column("IN", "bytesIn", "bytes"),
        _Column("OUT", "bytesOut", "bytes"),
    ),
    Table.SESSION: (_Column("SESSION", "sessionId"), *_OUTCOMES, *_TOKENS[:2], _SHARE),
    Table.DAY: (_Column("DAY", "day"), *_OUTCOMES, *_TOKENS),
    **{
        by: (_Column(by.name, by.value), _Column("TURNS", "turns"), _Column("REQUESTS", "requests"), *_TOKENS, _SHARE)
        for by in (Table.MODEL, Table.PERSON, Table.PROJECT)
    },
}


def _sums(report: UsageReport) -> str:
    turns = report.turns
    parts = [counted(report.calls.calls, "call"), counted(turns.turns, "turn")]
    if turns.input_tokens or turns.output_tokens:
        parts.append(f"{counted(turns.input_tokens, 'token')} in and {turns.output_tokens:,} out")
    if turns.cached_tokens and turns.cached_share is not None:
        parts.append(f"{turns.cached_share:.0%} from cache")
    if turns.cost_usd is not None:
        parts.append(f"${turns.cost_usd:,.4f}")
    return ", ".join(parts)


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
