"""Figures of the process as metrics of OpenTelemetry: turns, requests, calls, decisions, tokens, cost, and its load.

The names are those of the conventions for generative AI where these have one (docs/decisions/0048). No attribute has a
value that a stranger chooses: series must stay few, and tell nothing of what was said.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, TypeAlias

from attrs import define, field, frozen
from opentelemetry.metrics import CallbackOptions, Meter, Observation

from punie.adapters.telemetry.spans import Attributes, model_attributes
from punie.domain.permission.audit import DecisionRecord
from punie.domain.session.events import RequestEnded, RequestEnding, SessionEvent
from punie.domain.session.log import LoggedEvent
from punie.domain.session.turn import CallRecord, TurnRecord, Usage
from punie.domain.tools.tool import ToolOutcome, ToolSource
from punie.ports.sessions import UsageLedger

SECONDS: Final = (
    *(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
    *(327.68, 1310.72, 5242.88, 20971.52),
)
"""The bounds of buckets of the conventions, and four more: turns and commands may take hours."""

TOKENS: Final = tuple(float(4**power) for power in range(14))

MODELS_LIMIT: Final = 50
"""Models that are told apart; a provider may list any number."""

OTHER: Final = "_OTHER"
"""The conventions' word for a value that is none of the known ones."""


Record: TypeAlias = Callable[[float, Attributes], None]


Load: TypeAlias = Callable[[], tuple[int, int, int]]
"""Gives the sessions that are open in the process, the turns that run, and the prompts and turns that wait."""

GAUGES: Final = (
    ("punie.sessions.open", "{session}", "Sessions that are open."),
    ("punie.turns.running", "{turn}", "Turns that run."),
    ("punie.turns.waiting", "{turn}", "Prompts and turns that wait for others."),
)


@define(eq=False)
class Metrics:
    """The instruments of the process; lives as long as it. Recording neither waits nor fails.

    `load` is called in a thread of the library.
    """

    meter: Meter
    load: Load
    _models: set[str] = field(factory=set[str], init=False)
    _requests: Record = field(init=False)
    _first: Record = field(init=False)
    _turns: Record = field(init=False)
    _calls: Record = field(init=False)
    _tokens: Record = field(init=False)
    _cost: Record = field(init=False)
    _decisions: Record = field(init=False)

    def __attrs_post_init__(self) -> None:
        meter = self.meter

        def seconds(name: str, what: str) -> Record:
            return meter.create_histogram(name, "s", what, explicit_bucket_boundaries_advisory=SECONDS).record

        self._requests = seconds("gen_ai.client.operation.duration", "Requests to models.")
        self._first = seconds("gen_ai.client.operation.time_to_first_chunk", "Time to the first piece of an answer.")
        self._turns = seconds("gen_ai.invoke_agent.duration", "Turns, from the prompt to their end.")
        self._calls = seconds("gen_ai.execute_tool.duration", "Calls of tools, without the time of questions.")
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Tokens of requests.", explicit_bucket_boundaries_advisory=TOKENS
        ).record
        self._cost = meter.create_counter("punie.usage.cost", "{USD}", "Cost of requests, where prices are known.").add
        self._decisions = meter.create_counter("punie.permission.decisions", "{decision}", "Decisions on calls.").add
        for place, (name, unit, what) in enumerate(GAUGES):
            meter.create_observable_gauge(name, [self._observed(place)], unit, what)

    def hear(self, at: float, event: LoggedEvent | SessionEvent) -> None:
        """Take the next event of a session; `at` is its time."""
        del at
        if not isinstance(event, RequestEnded):
            return
        about = self._of_model(event.model) | {"gen_ai.operation.name": "chat"}
        self._count(event.usage, about)
        if event.first_s is not None:
            self._first(event.first_s, about)
        failed = {} if event.ending is RequestEnding.DONE else {"error.type": event.ending.value}
        self._requests(max(0.0, event.elapsed_s), about | failed)

    def decided(self, record: DecisionRecord) -> None:
        """Count a decision."""
        told: Attributes = {
            "punie.permission.verdict": record.verdict.value,
            "punie.permission.answered_by": record.answered_by.value,
        }
        self._decisions(1, told | _of_tool(record.tool, record.source))

    def turned(self, record: TurnRecord) -> None:
        """Measure a turn; that of a delegate takes no time of its own, and is within another."""
        if record.elapsed_ms > 0:
            failed = {"error.type": "failed"} if record.stop_reason == "failed" else {}
            about = self._of_model(record.model) | {"punie.turn.stop_reason": record.stop_reason} | failed
            self._turns(record.elapsed_ms / 1000, about)

    def called(self, record: CallRecord) -> None:
        """Measure a call."""
        outcome = record.outcome
        failed = {} if outcome is ToolOutcome.SUCCEEDED else {"error.type": outcome.value}
        self._calls(record.elapsed_ms / 1000, _of_tool(record.tool, record.source) | failed)

    def _count(self, usage: Usage, about: Attributes) -> None:
        if usage.input_tokens or usage.output_tokens:
            self._tokens(usage.input_tokens, about | {"gen_ai.token.type": "input"})
            self._tokens(usage.output_tokens, about | {"gen_ai.token.type": "output"})
        if usage.cost_usd:
            self._cost(usage.cost_usd, about)

    def _of_model(self, model: str | None) -> Attributes:
        name = model or ""
        if name not in self._models and len(self._models) >= MODELS_LIMIT:
            return {"gen_ai.provider.name": OTHER, "gen_ai.request.model": OTHER}
        self._models.add(name)
        return model_attributes(model)

    def _observed(self, place: int) -> Callable[[CallbackOptions], Iterable[Observation]]:
        return lambda _options: (Observation(self.load()[place]),)


def _of_tool(name: str, source: str) -> Attributes:
    """A tool of ours by its name; of all others, whose names others choose, the source alone."""
    known = source if source in set(ToolSource) else OTHER
    return {"gen_ai.tool.name": name if source == ToolSource.BUILT_IN else OTHER, "punie.tool.source": known}


@frozen
class MeasuredLedger(UsageLedger):
    """Measures what is recorded; lives as long as the process."""

    ledger: UsageLedger
    metrics: Metrics

    def record_call(self, record: CallRecord) -> None:
        self.metrics.called(record)
        self.ledger.record_call(record)

    def record_turn(self, record: TurnRecord) -> None:
        self.metrics.turned(record)
        self.ledger.record_turn(record)

    async def calls(self, *, since: float = 0.0, session_id: str | None = None) -> Sequence[CallRecord]:
        return await self.ledger.calls(since=since, session_id=session_id)

    async def turns(
        self, *, since: float = 0.0, session_id: str | None = None, persons: Collection[str] | None = None
    ) -> Sequence[TurnRecord] | None:
        return await self.ledger.turns(since=since, session_id=session_id, persons=persons)
