"""What the model is reminded of: kept, repaired, stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    repair_messages,
)

from punie.domain.errors import UnreadableSnapshotError


def unfinished(response: ModelResponse) -> ModelResponse | None:
    """What stays of an answer that was broken off: its text.

    Its calls were not run, and the last may be half written; thoughts without their signature are refused by providers,
    and so are ids of messages whose thoughts are missing.
    """
    said = [TextPart(part.content) for part in response.parts if isinstance(part, TextPart) and part.content]
    return ModelResponse(parts=said, model_name=response.model_name, state="interrupted") if said else None


def lasting(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The messages without the instructions each request carried: the next turn brings its own."""
    return [
        replace(message, instructions=None) if isinstance(message, ModelRequest) and message.instructions else message
        for message in messages
    ]


def mended(
    messages: Sequence[ModelMessage], left_over: ModelResponse | None, finished: Mapping[str, ToolReturnPart]
) -> list[ModelMessage]:
    """The messages of a turn that did not end well, valid for a next request: every call has a result.

    `finished` holds the results of calls that were done when the turn was broken off; the library has not always got
    round to them by then. The other open calls get a result that says that they were interrupted.
    """
    whole = lasting(messages)
    if left_over is not None:
        whole.append(left_over)
    missing = [finished[call_id] for call_id in _open_calls(whole) if call_id in finished]
    if missing:
        whole.append(ModelRequest(parts=missing, state="interrupted"))
    return repair_messages(whole)


def _open_calls(messages: Sequence[ModelMessage]) -> list[str]:
    """The ids of the calls of the last answer that have no result yet."""
    last = max((n for n, message in enumerate(messages) if isinstance(message, ModelResponse)), default=None)
    if last is None:
        return []
    answered = {
        part.tool_call_id
        for message in messages[last + 1 :]
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    }
    calls = (part.tool_call_id for part in messages[last].parts if isinstance(part, ToolCallPart))
    return [call_id for call_id in calls if call_id not in answered]


def dump(messages: Sequence[ModelMessage]) -> bytes:
    """The messages as JSON."""
    return ModelMessagesTypeAdapter.dump_json(list(messages))


def parse(snapshot: bytes) -> list[ModelMessage]:
    """The messages of a snapshot. Raises `UnreadableSnapshotError` for bytes that are none."""
    try:
        return repair_messages(ModelMessagesTypeAdapter.validate_json(snapshot))
    except ValidationError as error:
        raise UnreadableSnapshotError from error
