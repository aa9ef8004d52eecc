"""A history made shorter: how large it is, where it may be cut, and what stands in the place of what was cut off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from attrs import frozen
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    NativeToolSearchCallPart,
    NativeToolSearchReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from punie.domain.model.summary import (
    ARGUMENTS_CHARS,
    CHARS_PER_TOKEN,
    OPENING,
    PICTURE_TOKENS,
    RESULT_CHARS,
    TAKEN_IN,
    told_summary,
    within,
)

_SEARCHES = (NativeToolSearchCallPart, NativeToolSearchReturnPart)


@frozen
class Cut:
    """Where a history falls apart: `old` is summarised, `kept` stays. `prompt` is the running turn's, if that is cut.

    No call is parted from its result: `kept` begins with a prompt or with an answer of the model.
    """

    old: list[ModelMessage]
    kept: list[ModelMessage]
    prompt: list[UserPromptPart]


def tokens_of(messages: Sequence[ModelMessage]) -> int:
    """How much of the context they take: as the provider counted with its last answer, what came since by its length.

    The count holds what goes along with every request, instructions and tools; the estimate does not.
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, ModelResponse) and message.usage.total_tokens > 0:
            return message.usage.total_tokens + length_of(messages[index + 1 :])
    return length_of(messages)


def length_of(messages: Iterable[ModelMessage]) -> int:
    """The estimate in tokens, by the messages' length alone."""
    return sum(_size(message) for message in messages)


def cut_running(messages: Sequence[ModelMessage], keep_tokens: int) -> Cut | None:
    """Cut before a request of a running turn, so that the latest turns that fit are kept; None where nothing is gained.

    Where not even the running turn fits, it is cut as well, between two answers of the model; its prompt stays.
    """
    start = _turn_starts(messages)[-1:]
    first = start[0] if start else 0
    whole = [index for index in _turn_starts(messages) if length_of(messages[index:]) <= keep_tokens]
    if whole:
        return _cut(messages, whole[0], [])
    answers = [index for index in range(first + 1, len(messages)) if isinstance(messages[index], ModelResponse)]
    if not answers:  # the prompt alone: it must stay, however long it is
        return _cut(messages, first, [])
    fitting = [index for index in answers if length_of(messages[index:]) <= keep_tokens]
    prompt = [part for part in messages[first].parts if isinstance(part, UserPromptPart) and not _is_summary(part)]
    return _cut(messages, (fitting or answers[-1:])[0], prompt)


def cut_resting(messages: Sequence[ModelMessage], keep_tokens: int) -> Cut | None:
    """Cut between two turns: the last is kept where it fits and is not all there is; None where nothing is gained."""
    starts = [index for index in _turn_starts(messages) if not _is_summary(messages[index].parts[0])]
    if not starts:
        return None
    last = starts[-1]
    keeps = len(starts) > 1 and length_of(messages[last:]) <= keep_tokens
    return _cut(messages, last if keeps else len(messages), [])


def shortened(cut: Cut, summary: str) -> list[ModelMessage]:
    """The history that takes the place of the one that was cut."""
    told: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart(told_summary(summary)), *cut.prompt])]
    # What the provider's own search found stays found: calls in what is kept may rest on it.
    searches = [part for message in cut.old for part in message.parts if isinstance(part, _SEARCHES)]
    kept = [_uncounted(message) for message in cut.kept]
    if kept and isinstance(first := kept[0], ModelResponse):
        kept[0] = replace(first, parts=[*searches, *first.parts])
    else:
        told.append(ModelResponse(parts=[*searches, TextPart(TAKEN_IN)]))
    return [*told, *kept]


def written_out(messages: Iterable[ModelMessage], limit_chars: int) -> str:
    """The messages as text for whoever summarises them; of one that is too long the middle is left out."""
    text = "\n\n".join(said for message in messages for said in _lines(message))
    return within(text, limit_chars)


def _cut(messages: Sequence[ModelMessage], index: int, prompt: list[UserPromptPart]) -> Cut | None:
    old, kept = list(messages[:index]), list(messages[index:])
    if kept and isinstance(first := kept[0], ModelRequest):
        results = [part for part in first.parts if not isinstance(part, UserPromptPart)]
        if results:  # of calls before the cut, in one message with the prompt that followed them
            old.append(replace(first, parts=results))
            kept[0] = replace(first, parts=[part for part in first.parts if isinstance(part, UserPromptPart)])
    said = [part for message in old for part in message.parts if not _is_summary(part) and not _is_taken_in(part)]
    return Cut(old, kept, prompt) if said and any(part not in prompt for part in said) else None


def _turn_starts(messages: Sequence[ModelMessage]) -> list[int]:
    return [
        index
        for index, message in enumerate(messages)
        if isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)
    ]


def _is_summary(part: object) -> bool:
    return isinstance(part, UserPromptPart) and isinstance(part.content, str) and part.content.startswith(OPENING)


def _is_taken_in(part: object) -> bool:
    return isinstance(part, TextPart) and part.content == TAKEN_IN


def _uncounted(message: ModelMessage) -> ModelMessage:
    """What a provider counted with a longer history says nothing about this one."""
    return replace(message, usage=RequestUsage()) if isinstance(message, ModelResponse) else message


def _size(message: ModelMessage) -> int:
    pictures = sum(
        isinstance(item, BinaryContent)
        for part in message.parts
        if isinstance(part, UserPromptPart) and not isinstance(part.content, str)
        for item in part.content
    )
    chars = sum(_chars(part) for part in message.parts)
    return int(chars / CHARS_PER_TOKEN) + pictures * PICTURE_TOKENS + 4


def _chars(part: object) -> int:
    match part:
        case ToolCallPart():
            return len(part.tool_name) + len(part.args_as_json_str())
        case ToolReturnPart():
            return len(part.model_response_str())
        case UserPromptPart():
            return len(_prompt_text(part))
        case TextPart() | ThinkingPart():
            return len(part.content)
        case _:
            return len(str(getattr(part, "content", "")))


def _lines(message: ModelMessage) -> Iterable[str]:
    for part in message.parts:
        match part:
            case UserPromptPart():
                yield f"USER: {_prompt_text(part)}"
            case TextPart(content) if content:
                yield f"AGENT: {content}"
            case ToolCallPart():
                yield f"CALL {part.tool_name}: {within(part.args_as_json_str(), ARGUMENTS_CHARS)}"
            case ToolReturnPart():
                yield f"RESULT of {part.tool_name} ({part.outcome}): {within(part.model_response_str(), RESULT_CHARS)}"
            case _:
                pass  # thoughts are the model's own, and instructions go along with every request


def _prompt_text(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        return part.content
    return "\n".join(item if isinstance(item, str) else "[something that is no text]" for item in part.content)
