"""What another engine, or the next process, is told of a conversation (issue 6)."""

from __future__ import annotations

import pytest

from punie.domain.session.events import (
    CallFinished,
    HistoryForgotten,
    TextDelta,
    ThoughtDelta,
    ToolCallAnnounced,
    ToolCallUpdated,
    TurnEnded,
)
from punie.domain.session.log import LoggedEvent, PromptAccepted, PromptFilled, SessionBegun
from punie.domain.session.transcript import (
    INTERRUPTED,
    AgentSaid,
    PersonSaid,
    ToolUsed,
    TurnsLeftOut,
    TurnStoppedShort,
    prompts_in,
)
from punie.domain.session.turn import StopReason
from punie.domain.tools.execution import CallStatus
from punie.domain.tools.tool import ToolKind, ToolOutcome
from punie.domain.values.content import Image, Prompt, Text
from punie.domain.values.json_value import freeze_object
from tests.fakes.transcripts import transcript_of

END = TurnEnded(StopReason.END_TURN)


def asks(text: str = "go") -> PromptAccepted:
    return PromptAccepted("t", Prompt.of_text(text))


def person(text: str = "go") -> PersonSaid:
    return PersonSaid(Prompt.of_text(text))


def card(call_id: str) -> ToolCallAnnounced:
    return ToolCallAnnounced(call_id, "look", "Look", ToolKind.READ, (), freeze_object({"at": call_id}))


def done(call_id: str, text: str = "seen") -> CallFinished:
    return CallFinished(call_id, "look", ToolOutcome.SUCCEEDED, text)


def used(call_id: str, text: str = "seen", outcome: ToolOutcome = ToolOutcome.SUCCEEDED) -> ToolUsed:
    return ToolUsed(call_id, "look", freeze_object({"at": call_id}), outcome, text)


def test_what_was_said_and_done_in_its_order_and_no_thoughts() -> None:
    log = [
        SessionBegun("/p"), asks(), ThoughtDelta("hm"), TextDelta("I ", "m"), TextDelta("look.", "m"), card("a"),
        ToolCallUpdated("a", CallStatus.IN_PROGRESS), done("a"), ToolCallUpdated("a", CallStatus.COMPLETED),
        TextDelta("Fine."), END, asks("and now"), TextDelta("Bye."), END,
    ]  # fmt: skip
    first = (person(), AgentSaid("I look."), used("a"), AgentSaid("Fine."))
    assert transcript_of(log) == (*first, person("and now"), AgentSaid("Bye."))


def test_calls_at_once_have_each_their_arguments_in_the_order_of_their_ends() -> None:
    events = [asks(), card("a"), card("b"), card("c"), done("b", "B"), done("c", "C"), done("a", "A"), END]
    assert transcript_of(events) == (person(), used("b", "B"), used("c", "C"), used("a", "A"))


def test_calls_that_never_ended_were_interrupted() -> None:
    (_, first, second) = transcript_of([asks(), card("a"), card("b")])
    assert first == used("a", INTERRUPTED, ToolOutcome.CANCELLED)
    assert second == used("b", INTERRUPTED, ToolOutcome.CANCELLED)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (None, (TurnStoppedShort("ended with an error"),)),
        (StopReason.CANCELLED, (TurnStoppedShort("was cancelled"),)),
        (StopReason.END_TURN, ()),
        (StopReason.MAX_TOKENS, ()),
        (StopReason.REFUSAL, ()),
    ],
)
def test_a_turn_that_stopped_short_says_so(reason: StopReason | None, told: tuple[TurnStoppedShort, ...]) -> None:
    assert transcript_of([asks(), TextDelta("half"), TurnEnded(reason)]) == (person(), AgentSaid("half"), *told)


def test_a_picture_that_was_not_answered_is_not_sent_again_with_every_later_prompt() -> None:
    picture, error = Image("aGk=", "image/png"), TurnStoppedShort("ended with an error")
    with_words = PromptAccepted("t", Prompt((Text("look"), picture)))
    assert transcript_of([with_words, TurnEnded(None)]) == (person("look"), error)
    assert transcript_of([PromptAccepted("t", Prompt((picture,))), TurnEnded(None)]) == (person("[a picture]"), error)
    answered = transcript_of([with_words, TextDelta("A cat"), TurnEnded(None)])
    assert answered == (PersonSaid(Prompt((Text("look"), picture))), AgentSaid("A cat"), error)


def test_beyond_the_limit_the_oldest_whole_turns_are_let_go() -> None:
    log: list[LoggedEvent] = []
    for number in range(10):
        log += [asks(f"ask {number}"), card(f"c-{number}"), done(f"c-{number}", "x" * 100), TextDelta("y" * 100), END]
    left_out, *told = transcript_of(log, limit_chars=1000)
    turns = prompts_in(tuple(told))
    assert left_out == TurnsLeftOut(10 - turns)
    assert told[0] == person(f"ask {10 - turns}"), "a turn is whole or not there"
    assert 2 <= turns <= 5
    assert told[-1] == AgentSaid("y" * 100)
    assert len(told) == 3 * turns
    assert prompts_in((left_out, *told)) == 10


def test_a_last_turn_larger_than_the_limit_is_whole_all_the_same() -> None:
    told = transcript_of(
        [asks("old"), TextDelta("x" * 50), END, asks("new"), TextDelta("z" * 500), END], limit_chars=100
    )
    assert told[-2:] == (person("new"), AgentSaid("z" * 500))


def test_what_was_forgotten_is_no_part_of_it_nor_is_the_turn_that_had_it_forgotten() -> None:
    before = (asks("one"), TextDelta("1"), card("c-1"), done("c-1"), END, asks("/clear"))
    forgotten = (*before, TextDelta("half"), HistoryForgotten(), TextDelta("It is forgotten."), END)
    nothing = (TurnsLeftOut(2),)
    assert transcript_of(forgotten) == nothing
    assert transcript_of((*before, HistoryForgotten(), TurnEnded(StopReason.CANCELLED))) == nothing
    assert transcript_of((*forgotten, asks("two"), TextDelta("2"), END)) == (*nothing, person("two"), AgentSaid("2"))
    again = (*forgotten, asks("two"), TextDelta("2"), END, asks("/clear"), HistoryForgotten(), END)
    assert transcript_of(again) == (TurnsLeftOut(4),)


def test_what_the_model_got_stands_in_place_of_what_was_typed() -> None:
    filled = PromptFilled(Prompt.of_text("Review it well."))
    log = [asks("one"), TextDelta("1"), END, asks("/review it"), filled, TextDelta("2"), END]
    assert transcript_of(log) == (person("one"), AgentSaid("1"), person("Review it well."), AgentSaid("2"))
    assert transcript_of([filled, *log]) == transcript_of(log)
    assert transcript_of(log, limit_chars=30) == (TurnsLeftOut(1), person("Review it well."), AgentSaid("2"))
