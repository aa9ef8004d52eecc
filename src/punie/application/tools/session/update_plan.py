"""update_plan: the agent shows what it is going to do and how far it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TypeVar

from attrs import frozen

from punie.application.tools.built_in import STRING, BuiltInTool, schema
from punie.application.tools.session_tool import CallContext, PreparedCall
from punie.domain.session.events import PlanChanged
from punie.domain.session.turn import Plan, PlanStep, StepPriority, StepStatus
from punie.domain.tools.arguments import text_argument
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.display import one_line
from punie.domain.values.json_value import JsonObject
from punie.ports.engine import EventSink
from punie.ports.tools import CallProgress

E = TypeVar("E", bound=StrEnum)

STEPS_LIMIT = 50
STEP_CHARS = 300

_STEP = schema(
    {"content": STRING, "status": {"type": "string", "enum": [status.value for status in StepStatus]}},
    {"priority": {"type": "string", "enum": [priority.value for priority in StepPriority]}},
)


@frozen
class UpdatePlan(BuiltInTool):
    """Puts a plan in place of the last one; has no effect but to be seen, and needs no permission."""

    events: EventSink
    TALKS = True
    DESCRIPTOR = ToolDescriptor(
        "update_plan",
        ToolKind.THINK,
        "Show the user your plan for a task of several steps: always all steps, again when one begins or ends.",
        schema({"entries": {"type": "array", "maxItems": STEPS_LIMIT, "items": _STEP}}),
        categories=("session",),
        roles={"entries": Role.PLAIN},
        column=Column.READ,
    )

    def title(self, arguments: JsonObject) -> str:
        steps = tuple(_steps(arguments))
        done = sum(step.status is StepStatus.COMPLETED for step in steps)
        return f"Plan: {done} of {len(steps)} done" if steps else "Plan"

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        plan: Plan = tuple(_steps(arguments))

        async def effect(_progress: CallProgress) -> ToolResult:
            await self.events.emit(PlanChanged(plan))
            return ToolResult.success("The user sees the plan.")

        return PreparedCall(effect)


def _steps(arguments: JsonObject) -> Iterator[PlanStep]:
    """The steps as far as the arguments have their form; they need not be validated yet."""
    entries = arguments.get("entries")
    for entry in (entries if isinstance(entries, tuple) else ())[:STEPS_LIMIT]:
        if isinstance(entry, Mapping):
            content = one_line(text_argument(entry, "content").strip(), STEP_CHARS)
            status = _value(StepStatus, text_argument(entry, "status"), StepStatus.PENDING)
            priority = _value(StepPriority, text_argument(entry, "priority"), StepPriority.MEDIUM)
            if content:
                yield PlanStep(content, status, priority)


def _value(kind: type[E], word: str, default: E) -> E:
    return kind(word) if word in frozenset(one.value for one in kind) else default
