"""The conversation as a constrained model is told it: a system text, then user and assistant in turn, all plain text.

No chat template's own form of tools is used: many templates have none, and the grammar allows only ours.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    RetryFeedbackPart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition

from punie_gguf.stepwise.schema import ANSWER, ARGUMENTS, CALLS, SAY, TOOL

_DESCRIPTION_CHARS: Final = 160

_FORMS: Final = f"""\
Every answer of yours is one JSON object, in one of these forms:
{{"{TOOL}": NAME, "{ARGUMENTS}": {{...}}}} uses a tool; its result comes next.
{{"{SAY}": TEXT, "{CALLS}": [{{"{TOOL}": NAME, "{ARGUMENTS}": {{...}}}}, ...]}} says something and uses one or several \
tools at once.
{{"{ANSWER}": TEXT}} ends your turn: what you found or did, in Markdown.
Use a tool whenever you need to know or to change something; do not guess."""
_TOOLS: Final = "\n\nThe tools (? marks what may be left out):\n{lines}"
_ANSWER_ONLY: Final = f'Your answer is one JSON object, {{"{ANSWER}": TEXT}}, with TEXT in Markdown.'
_UNSEEN: Final = "[something that is not text; this model cannot see it]"


def plain_messages(
    messages: Sequence[ModelMessage], instructions: str, tools: Sequence[ToolDefinition]
) -> list[ModelMessage]:
    """The same conversation; no two messages of one side follow each other, since some templates refuse that."""
    told: list[tuple[str, str]] = []
    for message in messages:
        for side, text in _sides(message):
            if told and told[-1][0] == side:
                told[-1] = (side, f"{told[-1][1]}\n\n{text}")
            else:
                told.append((side, text))
    plain: list[ModelMessage] = [ModelRequest(parts=[SystemPromptPart(system_text(instructions, tools))])]
    for side, text in told:
        said = ModelRequest(parts=[UserPromptPart(text)]) if side == "user" else ModelResponse(parts=[TextPart(text)])
        plain.append(said)
    return plain


def system_text(instructions: str, tools: Sequence[ToolDefinition]) -> str:
    """The instructions, the forms of an answer, and one line a tool."""
    if not tools:
        return "\n\n".join(filter(None, (instructions, _ANSWER_ONLY)))
    lines = "\n".join(_line(tool) for tool in tools)
    return "\n\n".join(filter(None, (instructions, _FORMS + _TOOLS.format(lines=lines))))


def _line(tool: ToolDefinition) -> str:
    schema = tool.parameters_json_schema
    properties = cast("Mapping[str, object]", schema.get("properties") or {})
    required = schema.get("required") or ()
    shown = ", ".join(f"{name}{'' if name in required else '?'}: {_kind(of)}" for name, of in properties.items())
    said = " ".join((tool.description or "").split())
    said = said if len(said) <= _DESCRIPTION_CHARS else f"{said[:_DESCRIPTION_CHARS].rsplit(' ', 1)[0]} ..."
    return f"- {tool.name}({shown}){f': {said}' if said else ''}"


def _kind(schema: object) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    said = cast("Mapping[str, Any]", schema)
    if isinstance(values := said.get("enum"), list):
        return "|".join(json.dumps(value, ensure_ascii=False) for value in cast("list[object]", values)[:8])
    kind = said.get("type", "any")
    if kind == "array":
        return f"[{_kind(said.get('items'))}]"
    return "|".join(map(str, cast("list[object]", kind))) if isinstance(kind, list) else str(kind)


def _sides(message: ModelMessage) -> Iterator[tuple[str, str]]:
    if isinstance(message, ModelResponse):
        text = _step(message)
        if text:
            yield "assistant", text
        return
    for part in message.parts:
        if text := _asked(part):
            yield "user", text


def _asked(part: ModelRequestPart) -> str:
    match part:
        case UserPromptPart(content=content):
            return content if isinstance(content, str) else "\n".join(_texts(content))
        case ToolReturnPart():
            how = "failed" if part.outcome == "failed" else "result"
            return f"[{part.tool_name} {how}]\n{_result(part)}"
        case RetryFeedbackPart():
            return part.model_response()
        case SystemPromptPart(content=text):
            return text
        case _:
            return ""


def _result(part: ToolReturnPart) -> str:
    content: object = part.content
    if isinstance(content, str):
        return content
    whole = isinstance(content, list) and any(isinstance(item, str) for item in cast("list[object]", content))
    return "\n".join(_texts(cast("list[object]", content))) if whole else part.model_response_str()


def _texts(content: Iterable[object]) -> Iterator[str]:
    for item in content:
        yield item if isinstance(item, str) else _UNSEEN


def _step(response: ModelResponse) -> str:
    """The model's answer in the form in which it had to be written."""
    said = "\n".join(part.content for part in response.parts if isinstance(part, TextPart) and part.content)
    calls = [_call(part) for part in response.parts if isinstance(part, ToolCallPart)]
    if not calls:
        return _json({ANSWER: said}) if said else ""
    return _json(calls[0] if len(calls) == 1 and not said else {SAY: said, CALLS: calls})


def _call(part: ToolCallPart) -> dict[str, object]:
    arguments: object = part.args or {}
    if isinstance(arguments, str):
        with contextlib.suppress(ValueError, RecursionError):  # as it was written, then
            arguments = json.loads(arguments)
    return {TOOL: part.tool_name, ARGUMENTS: arguments}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
