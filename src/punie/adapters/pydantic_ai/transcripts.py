"""What another engine, or a turn whose process died, left behind, as messages of the library."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from punie.adapters.pydantic_ai.prompts import user_content
from punie.domain.model.text import NO_ANSWER, encodable
from punie.domain.session.transcript import AgentSaid, PersonSaid, ToolUsed, Transcript, TurnsLeftOut, TurnStoppedShort
from punie.domain.tools.tool import ToolOutcome
from punie.domain.values.json_value import thaw_object

_UNFIT = re.compile(r"[^A-Za-z0-9_-]")


def messages_of(transcript: Transcript) -> list[ModelMessage]:
    """Messages that any provider takes: each call has its result, and a turn that broke off says so."""
    messages: list[ModelMessage] = []
    for item in transcript:
        match item:
            case PersonSaid(prompt):
                messages += _no_answer(messages)
                messages.append(ModelRequest(parts=[UserPromptPart(user_content(prompt))]))
            case AgentSaid(text):
                messages.append(ModelResponse(parts=[TextPart(encodable(text))]))
            case ToolUsed():
                messages += _call_and_result(item)
            case TurnStoppedShort(how):
                messages.append(ModelResponse(parts=[TextPart(f"[This turn {how}.]")]))
            case TurnsLeftOut():
                pass  # a model that is told of them asks what was in them
    return [*messages, *_no_answer(messages)]


def _no_answer(messages: list[ModelMessage]) -> list[ModelMessage]:
    """What stands between a prompt that nothing came of and the next one: some providers take no two in a row."""
    if messages and any(isinstance(part, UserPromptPart) for part in messages[-1].parts):
        return [ModelResponse(parts=[TextPart(NO_ANSWER)])]
    return []


def _call_and_result(used: ToolUsed) -> tuple[ModelMessage, ModelMessage]:
    name = _UNFIT.sub("_", used.tool)[:64] or "tool"  # a model may have called anything, and providers check names
    arguments = thaw_object(used.arguments) if isinstance(used.arguments, Mapping) else {}
    outcome = "failed" if used.outcome in {ToolOutcome.FAILED, ToolOutcome.CANCELLED} else "success"
    return (
        ModelResponse(parts=[ToolCallPart(name, arguments, used.call_id)]),
        ModelRequest(parts=[ToolReturnPart(name, encodable(used.text), used.call_id, outcome=outcome)]),
    )
