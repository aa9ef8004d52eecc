"""When requests to the model began and ended, told from outside of the engine."""

from __future__ import annotations

from punie.application.desk.turn_desk import RequestWatch
from punie.domain.session.events import RequestEnded, RequestEnding, TextDelta, ThoughtDelta
from punie.domain.session.turn import Usage
from tests.fakes.clock import FakeClock


def watch() -> tuple[RequestWatch, FakeClock]:
    clock = FakeClock()
    return RequestWatch(clock, "m"), clock


def test_a_request_lasts_from_the_listing_of_tools_to_its_usage() -> None:
    requests, clock = watch()
    clock.advance(5)
    requests.begin()
    clock.advance(1)
    requests.piece()
    clock.advance(2)
    requests.piece()
    ended = requests.counted(Usage(10, 2, 3, 4, 1, 0.5))
    assert ended == RequestEnded("m", 3.0, Usage(10, 2, 3, 4, 1, 0.5), 1.0)


def test_each_request_has_its_own_usage_not_the_turns_so_far() -> None:
    requests, clock = watch()
    requests.begin()
    requests.counted(Usage(10, 2, requests=1, cost_usd=0.5))
    requests.begin()
    clock.advance(1)
    second = requests.counted(Usage(25, 3, requests=2, cost_usd=0.75))
    assert second == RequestEnded("m", 1.0, Usage(15, 1, requests=1, cost_usd=0.25), None)


def test_what_adds_no_request_ends_none() -> None:
    requests, _ = watch()
    requests.begin()
    assert requests.counted(Usage()) is None
    assert requests.counted(Usage(5, 5, requests=1)) is not None
    assert requests.counted(Usage(5, 5, requests=1)) is None


def test_an_engine_that_counts_tokens_alone_is_measured_too() -> None:
    requests, _ = watch()
    assert requests.counted(Usage(5, 5)) is not None
    assert requests.counted(Usage(5, 5)) is None
    assert requests.counted(Usage(9, 5)) == RequestEnded("m", 0.0, Usage(4, 0), None)


def test_a_request_after_a_call_begins_with_the_calls_end() -> None:
    requests, clock = watch()
    clock.advance(7)
    requests.interrupt()
    clock.advance(2)
    ended = requests.counted(Usage(1, 1, requests=1))
    assert ended is not None
    assert ended.elapsed_s == 2.0


def test_a_turn_that_stops_in_a_request_ends_it() -> None:
    requests, clock = watch()
    requests.begin()
    clock.advance(4)
    assert requests.stopped(RequestEnding.FAILED) == RequestEnded("m", 4.0, Usage(), None, RequestEnding.FAILED)
    assert requests.stopped(RequestEnding.FAILED) is None


def test_a_turn_that_stops_in_a_call_or_before_anything_had_none_under_way() -> None:
    requests, _ = watch()
    assert requests.stopped(RequestEnding.CANCELLED) is None
    requests.begin()
    requests.interrupt()
    assert requests.stopped(RequestEnding.CANCELLED) is None
    requests.piece()
    assert requests.stopped(RequestEnding.CANCELLED) is not None


def test_an_answer_that_is_broken_off_counts_with_the_tokens_of_what_was_said() -> None:
    requests, _ = watch()
    requests.hear(TextDelta("x" * 9))
    requests.hear(ThoughtDelta("y" * 8))
    stopped = requests.stopped(RequestEnding.CANCELLED)
    assert stopped is not None
    assert stopped.usage == Usage(output_tokens=5, requests=1)
    requests.hear(TextDelta("z"))
    stopped = requests.stopped(RequestEnding.CANCELLED)
    assert stopped is not None
    assert stopped.usage.output_tokens == 1
