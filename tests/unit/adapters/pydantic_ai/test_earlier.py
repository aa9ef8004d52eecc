"""What is kept of the messages before a turn, and when it is made anew."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai.messages import (
    BinaryContent,
    CompactionPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider

from punie.adapters.library.upkeep import HistoryUpkeep
from punie.adapters.pydantic_ai.bodies import Worded, wording_once
from punie.adapters.pydantic_ai.earlier import Earlier, History, Memo, earlier_of
from punie.adapters.pydantic_ai.history import _JSON, LONG_BYTES, dump
from punie.adapters.pydantic_ai.streaming import StreamedModel, as_it_thinks
from tests.fakes.engine_side import FakeEventSink

Messages = list[ModelMessage]


def asked(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def said(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)])


def a_turn(text: str) -> Messages:
    call, result = ToolCallPart("look", {}, text), ToolReturnPart("look", "seen", text)
    return [asked(text), ModelResponse(parts=[call]), ModelRequest(parts=[result]), said(f"{text}!")]


class Preparing:
    """Counts the messages that are prepared; those with a word of `noted` in their prompt are replaced."""

    def __init__(self, noted: str = "") -> None:
        self.noted = noted
        self.counts: list[int] = []

    def __call__(self, messages: Messages) -> Messages:
        self.counts.append(len(messages))
        return [replace(one) if self._notes(one) else one for one in messages] if self.noted else messages

    def _notes(self, message: ModelMessage) -> bool:
        part = message.parts[0]
        return isinstance(part, UserPromptPart) and part.content == self.noted


def after(known: Earlier | None, history: Sequence[ModelMessage], preparing: Preparing) -> Earlier:
    assert known is not None
    return known.going_on(history, preparing)


def test_what_a_turn_added_is_prepared_alone() -> None:
    preparing = Preparing()
    history = a_turn("a")
    first = after(earlier_of(history), history, preparing)
    longer = History([*history, *a_turn("b")], first)
    second = after(earlier_of(longer), longer, preparing)
    assert preparing.counts == [4, 4]
    assert all(one is other for one, other in zip(second.sent, longer, strict=True))
    assert second.messages == longer


def test_all_is_prepared_where_the_library_words_what_was_added_otherwise() -> None:
    preparing = Preparing("b")
    history = a_turn("a")
    longer = History([*history, *a_turn("b")], after(earlier_of(history), history, preparing))
    known = after(earlier_of(longer), longer, preparing)
    assert preparing.counts == [4, 4, 8]
    assert known.sent == longer
    assert known.sent[4] is not longer[4]


@pytest.mark.parametrize("changed", [0, 3])
def test_a_history_that_does_not_go_on_from_what_is_known_is_looked_at_anew(changed: int) -> None:
    preparing = Preparing()
    history = a_turn("a")
    known = after(earlier_of(history), history, preparing)
    other = [*history[:changed], replace(history[changed]), *history[changed + 1 :], *a_turn("b")]
    after(earlier_of(History(other, known)), other, preparing)
    assert preparing.counts == [4, 8]
    after(earlier_of(History(history[:2], known)) or Earlier(), history[:2], preparing)
    assert preparing.counts[2:] == [3], "a call without its result gets one"


def test_what_was_known_counts_up_to_a_prompt_alone() -> None:
    history = a_turn("a")
    known = Earlier(history[:2], history[:2])
    assert earlier_of(History(history, known)) is not known


@pytest.mark.parametrize(
    "last",
    [
        asked("not answered"),
        ModelResponse(parts=[TextPart("half")], state="interrupted"),
        ModelResponse(parts=[CompactionPart(content="all of it")]),
    ],
)
def test_a_history_that_the_library_may_look_at_otherwise_is_no_such_one(last: ModelMessage) -> None:
    assert earlier_of([*a_turn("a"), last]) is None
    assert earlier_of([]) is None


def test_a_value_is_made_once_and_goes_with_its_message() -> None:
    numbers = itertools.count(1)
    memo = Memo[int](lambda _: next(numbers))
    message = asked("a")
    assert [memo.of(message), memo.of(message), memo.of(asked("a"))] == [1, 1, 2]
    assert len(memo) == 1
    del message
    gc.collect()
    assert len(memo) == 0


def test_a_run_holds_what_goes_on_from_the_messages_before_it() -> None:
    sink = FakeEventSink()
    library: Any = None
    history, added = a_turn("a"), a_turn("b")
    model = StreamedModel(TestModel(), "turn", sink, HistoryUpkeep(library, "turn", sink, None), history)
    assert model.behind([*history, *added]) == added
    assert model.earlier is history
    assert model.behind(added) == added
    assert not model.earlier


@pytest.mark.anyio
async def test_a_message_is_worded_once_unless_its_parts_change() -> None:
    client = AsyncOpenAI(api_key="k", base_url="http://127.0.0.1:9/v1")
    plain, model = (OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client)) for _ in range(2))
    wording: Any = wording_once(model)
    pixel = BinaryContent(b"\x89PNG", media_type="image/png")
    request, answer = asked("a"), said("b")
    silent, seen = ModelResponse(parts=[]), ModelRequest(parts=[UserPromptPart(["see", pixel])])
    own: Any = plain
    for _ in range(2):
        for message in (request, seen):
            worded = [item async for item in wording._map_user_message(message)]
            assert worded == [item async for item in own._map_user_message(message)]
            worded[0]["content"] = "changed"
        for one in (answer, silent):
            assert wording._map_model_response(one) == own._map_model_response(one)
    request.parts = [*request.parts, UserPromptPart("c")]
    assert [item["content"] async for item in wording._map_user_message(request)] == ["a", "c"]
    assert wording_once(TestModel()) is not wording


def test_a_model_is_told_once_in_which_field_its_server_thinks() -> None:
    client = AsyncOpenAI(api_key="k", base_url="http://127.0.0.1:9/v1")
    model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
    thought = ThinkingPart("Hm.", id="reasoning_content", provider_name=model.system)
    history, made = [asked("a"), ModelResponse(parts=[thought])], dict[str, Model]()
    told = as_it_thinks(model, history, made)
    assert told is not model
    assert told.profile.get("openai_chat_thinking_field") == "reasoning_content"
    assert as_it_thinks(model, history, made) is told
    assert as_it_thinks(model, history[:1], made) is model


def test_a_wording_with_pictures_is_not_kept() -> None:
    worded = Worded[str]()
    seen = ModelRequest(parts=[UserPromptPart(["see"])])
    assert worded.keep(seen, "w") == "w"
    assert worded.of(seen) is None


def test_a_snapshot_is_the_librarys_json_and_no_long_message_is_held_twice() -> None:
    long = asked("x" * LONG_BYTES)
    history = [*a_turn("ä"), long, said("b")]
    before = len(_JSON)
    for _ in range(2):
        assert dump(history) == ModelMessagesTypeAdapter.dump_json(history)
    assert len(_JSON) - before == len(history) - 1
    assert dump([]) == b"[]"
