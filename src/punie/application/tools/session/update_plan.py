"""The tool `update_plan`: the steps of a task and their progress, as the agent shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TypeVar

from attrs import frozen

from punie.application.tools.built_in import STRING, PlainTool, schema
from punie.application.tools.session_tool import CallContext
from punie.domain.session.events import PlanChanged
from punie.domain.session.turn import PlanStep, StepPriority, StepStatus
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.schema import text_argument
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.display import one_line
from punie.domain.values.json_value import JsonObject
from punie.ports.engine import EventSink

E = TypeVar("E", bound=StrEnum)

STEPS_LIMIT = 50
STEP_CHARS = 300

_STEP = schema(
    {"content": STRING, "status": {"type": "string", "enum": [status.value for status in StepStatus]}},
    {"priority": {"type": "string", "enum": [priority.value for priority in StepPriority]}},
)


@frozen
class UpdatePlan(PlainTool):
    """Shows a plan in place of the last one; a call has no other effect and needs no permission."""

    events: EventSink
    TALKS = True
    DESCRIPTOR = ToolDescriptor(
        "update_plan",
        ToolKind.THINK,
        "Show the user your plan for a longer task: all steps, again when one begins or ends.",
        schema({"entries": {"type": "array", "maxItems": STEPS_LIMIT, "items": _STEP}}),
        categories=("session",),
        roles={"entries": Role.PLAIN},
        column=Column.READ,
    )

    @property
    def quiet(self) -> bool:
        return True

    def title(self, arguments: JsonObject) -> str:
        steps = tuple(_steps(arguments))
        done = sum(step.status is StepStatus.COMPLETED for step in steps)
        return f"Plan: {done} of {len(steps)} done" if steps else "Plan"

    async def run(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        await self.events.emit(PlanChanged(tuple(_steps(arguments))))
        return ToolResult.success("The user sees the plan.")


def _steps(arguments: JsonObject) -> Iterator[PlanStep]:
    """The steps, as far as the arguments, which may not be validated yet, have their form."""
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
