"""Reading a step while it is written: however it is cut, the same comes out, and text is out before the step ends."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from punie_gguf.stepwise.reading import Called, StepReader, Told

TEXT = st.text(max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
NAMES = st.text(min_size=1, max_size=10)
CALLS = st.fixed_dictionaries({"tool": NAMES, "arguments": JSON})
STEPS = st.one_of(
    st.fixed_dictionaries({"answer": TEXT}),
    CALLS,
    st.fixed_dictionaries({"say": TEXT, "calls": st.lists(CALLS, min_size=1, max_size=3)}),
)


def read(pieces: list[str]) -> tuple[str, list[tuple[str, Any]], StepReader]:
    """All that is told, and the calls."""
    reader = StepReader()
    told, calls = "", list[tuple[str, Any]]()
    for piece in pieces:
        for made in reader.feed(piece):
            if isinstance(made, Told):
                told += made.text
            else:
                calls.append((made.tool, json.loads(made.arguments)))
    return told, calls, reader


def cut(text: str, places: list[int]) -> list[str]:
    """The text in pieces."""
    marks = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(marks)]


@settings(deadline=None, max_examples=80)
@given(
    step=STEPS,
    places=st.lists(st.integers(0, 500), max_size=8),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 1]),
)
def test_a_step_means_the_same_however_it_is_written_and_cut(
    step: dict[str, Any], places: list[int], ascii_only: bool, indent: int | None
) -> None:
    written = json.dumps(step, ensure_ascii=ascii_only, indent=indent)
    told, calls, reader = read(cut(written, places))
    wanted = step.get("calls", [step] if "tool" in step else [])
    assert told == step.get("answer", step.get("say", ""))
    assert calls == [(call["tool"], call["arguments"]) for call in wanted]
    assert reader.whole


@settings(deadline=None, max_examples=40)
@given(text=st.text(max_size=60), places=st.lists(st.integers(0, 500), max_size=5))
def test_whatever_a_model_writes_is_read_without_an_error(text: str, places: list[int]) -> None:
    for start in ("", "{", '{"answer":"', '{"tool":', '{"calls":[', '{"answer":"\\u', '{"arguments":'):
        read(cut(start + text, places))


def test_text_is_told_as_it_comes() -> None:
    reader = StepReader()
    assert reader.feed('{"answer":"Hel') == [Told("Hel")]
    assert reader.feed("lo") == [Told("lo")]
    assert not reader.whole
    assert reader.feed('!"}') == [Told("!")]
    assert reader.whole


def test_what_is_said_first_is_told_before_the_calls_that_follow_it() -> None:
    reader = StepReader()
    assert reader.feed('{"say":"I look.","calls":[{"tool":"look","argu') == [Told("I look.")]
    assert reader.feed('ments":{}}]') == []
    assert reader.feed("}") == [Called("look", "{}")]


def test_arguments_are_passed_on_as_they_were_written() -> None:
    assert StepReader().feed('{"tool":"t","arguments":{"a": 1e400, "b": "}\\"{"}}') == [
        Called("t", '{"a": 1e400, "b": "}\\"{"}')
    ]


def test_a_character_in_two_halves_is_told_once_it_is_whole() -> None:
    reader = StepReader()
    assert reader.feed('{"answer":"\\ud83d') == []
    assert reader.feed("\\ude00") == [Told("\U0001f600")]
    assert reader.feed('\\ud83d.\\ude00"}') == [Told("\ufffd.\ufffd")]


@pytest.mark.parametrize("text", ["Just text.", "```json\n{}", "[1]", '"x"'])
def test_an_answer_that_is_no_step_is_text(text: str) -> None:
    told, calls, reader = read([text])
    assert (told, calls, reader.whole) == (text, [], True)


@pytest.mark.parametrize(
    "text",
    ['{"tool":"look","arguments":{"a":1}', '{"tool":"look"', '{"answer":"half', '{"calls":[{"tool":"a"}]', "{", '{"to'],
)
def test_a_step_that_breaks_off_calls_nothing_and_is_not_whole(text: str) -> None:
    _, calls, reader = read([text])
    assert calls == []
    assert not reader.whole


@pytest.mark.parametrize(
    "text", ['{"tool":7,"arguments":{}}', '{"tool":"","arguments":{}}', '{"calls":"x"}', '{"calls":[7,{}]}', "{}"]
)
def test_a_call_without_a_name_is_none(text: str) -> None:
    assert StepReader().feed(text) == []


def test_what_follows_a_step_counts_for_nothing() -> None:
    told, calls, _ = read(['{"answer":"a"} {"tool":"look","arguments":{}}'])
    assert (told, calls) == ("a", [])
