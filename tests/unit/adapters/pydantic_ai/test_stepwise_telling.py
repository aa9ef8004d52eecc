"""What a constrained model is told: plain text, both sides in turn, and its own steps as it had to write them."""

from __future__ import annotations

import json
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition

from punie_gguf.stepwise.telling import plain_messages, system_text

UNSEEN = "[something that is not text; this model cannot see it]"
READ = ToolDefinition(
    name="read_file",
    description="Reads a file.\n  Whole, or some lines.",
    parameters_json_schema={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "line": {"type": ["integer", "null"]},
            "how": {"enum": ["fast", "slow"]},
            "more": {"type": "array", "items": {"type": "string"}},
            "any": True,
        },
        "required": ["path"],
    },
)


def told(messages: list[ModelMessage]) -> list[tuple[str, str]]:
    """The sides and texts behind the system text."""
    plain = plain_messages(messages, "", [READ])
    assert isinstance(plain[0].parts[0], SystemPromptPart)
    found: list[tuple[str, str]] = []
    for message in plain[1:]:
        (part,) = message.parts
        assert isinstance(part, (UserPromptPart, TextPart))
        found.append(("user" if isinstance(message, ModelRequest) else "assistant", str(part.content)))
    return found


def test_a_tool_is_one_line_with_its_arguments() -> None:
    text = system_text("Be brief.", [READ])
    assert text.startswith("Be brief.\n\n")
    line = (
        '- read_file(path: string, line?: integer|null, how?: "fast"|"slow", more?: [string], any?: any): Reads a file.'
    )
    assert f"{line} Whole, or some lines." in text.splitlines()


def test_a_long_description_is_cut_between_words() -> None:
    long = ToolDefinition(name="t", description="word " * 100, parameters_json_schema={"type": "object"})
    (line,) = [line for line in system_text("", [long]).splitlines() if line.startswith("- t(")]
    assert line.endswith("word ...")
    assert len(line) < 180


def test_calls_and_results_are_told_in_the_form_of_a_step() -> None:
    conversation: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("What is in a?")]),
        ModelResponse(parts=[ThinkingPart("hm"), ToolCallPart("read_file", '{"path": "a"}', "1")]),
        ModelRequest(parts=[ToolReturnPart("read_file", "one line", "1")]),
        ModelResponse(parts=[TextPart("And b?"), ToolCallPart("read_file", {"path": "b"}, "2")]),
        ModelRequest(
            parts=[
                ToolReturnPart("read_file", "It is gone.", "2", outcome="failed"),
                ToolReturnPart("look", ["A picture:", BinaryContent(b"x", media_type="image/png")], "3"),
            ]
        ),
        ModelResponse(parts=[TextPart("a has one line.")]),
        ModelRequest(parts=[UserPromptPart(["Look:", BinaryContent(b"x", media_type="image/png")])]),
    ]
    steps: list[Any] = [text if side == "user" else json.loads(text) for side, text in told(conversation)]
    assert steps == [
        "What is in a?",
        {"tool": "read_file", "arguments": {"path": "a"}},
        "[read_file result]\none line",
        {"say": "And b?", "calls": [{"tool": "read_file", "arguments": {"path": "b"}}]},
        f"[read_file failed]\nIt is gone.\n\n[look result]\nA picture:\n{UNSEEN}",
        {"answer": "a has one line."},
        f"Look:\n{UNSEEN}",
    ]


def test_both_sides_take_turns_whatever_the_history_holds() -> None:
    conversation: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("one")]),
        ModelRequest(
            parts=[UserPromptPart("two"), RetryFeedbackPart("Try again.", retry=RetryInfo(cause="model_retry"))]
        ),
        ModelResponse(parts=[]),
        ModelResponse(parts=[TextPart("a")]),
        ModelResponse(parts=[ToolCallPart("t", "not json", "1")]),
        ModelRequest(parts=[ToolReturnPart("t", "r", "1"), SystemPromptPart("Mind the gap.")]),
    ]
    texts = told(conversation)
    assert [side for side, _ in texts] == ["user", "assistant", "user"]
    assert texts[0][1].startswith("one\n\ntwo\n\n")
    assert '"arguments":"not json"' in texts[1][1]
    assert texts[2][1] == "[t result]\nr\n\nMind the gap."
