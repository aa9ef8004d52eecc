"""What a session's gauge adds to what its engine says."""

from __future__ import annotations

from punie.application.turns.model_shelf import ContextGauge
from punie.domain.session.events import ContextUsed, UsageChanged
from punie.domain.session.turn import Usage


def test_the_engines_size_wins_over_the_settings():
    gauge = ContextGauge(1000)
    assert gauge.read(ContextUsed(5)) == ContextUsed(5, 1000)
    assert gauge.read(ContextUsed(5, 2000)) == ContextUsed(5, 2000)


def test_the_cost_is_the_sessions_and_not_the_turns():
    gauge = ContextGauge(1000)
    gauge.count(UsageChanged(Usage(cost_usd=0.25)))
    gauge.count(UsageChanged(Usage(cost_usd=0.5)))
    assert gauge.read(ContextUsed(5)).cost_usd == 0.5
    gauge.end_turn()
    gauge.end_turn()
    gauge.count(UsageChanged(Usage(cost_usd=1.0)))
    assert gauge.read(ContextUsed(5)).cost_usd == 1.5


def test_the_work_of_delegates_is_the_turns_and_then_the_sessions():
    gauge = ContextGauge(1000)
    gauge.count(UsageChanged(Usage(10, requests=1, cost_usd=1.0)))
    gauge.lent["t1"] = Usage(1, requests=2, cost_usd=0.5)
    gauge.lent["t1"] = Usage(2, requests=3, cost_usd=0.75)
    assert gauge.whole_turn == Usage(12, requests=4, cost_usd=1.75)
    assert gauge.read(ContextUsed(5)).cost_usd == 1.75
    gauge.end_turn()
    assert gauge.whole_turn == Usage()
    assert gauge.spent.requests == 4


def test_without_a_price_there_is_no_cost():
    gauge = ContextGauge(1000)
    gauge.count(UsageChanged(Usage(input_tokens=3)))
    assert gauge.read(ContextUsed(5)).cost_usd is None


def test_a_session_that_goes_on_elsewhere_claims_no_sum():
    gauge = ContextGauge(1000, continued=True)
    gauge.count(UsageChanged(Usage(cost_usd=0.25)))
    assert gauge.read(ContextUsed(5)).cost_usd is None
    assert ContextGauge(1000, continued=True, before=ContextUsed(5)).cost_usd is None


def test_a_session_that_goes_on_begins_with_what_its_log_said_last_and_counts_on():
    gauge = ContextGauge(None, continued=True, before=ContextUsed(700, 1000, 0.5))
    assert gauge.latest == ContextUsed(700, 1000, 0.5)
    assert gauge.cost_usd == 0.5
    gauge.count(UsageChanged(Usage(cost_usd=0.25)))
    assert gauge.read(ContextUsed(800, 1000)) == ContextUsed(800, 1000, 0.75)


def test_a_size_that_is_known_here_wins_over_that_of_the_model_before():
    assert ContextGauge(2000, continued=True, before=ContextUsed(7, 1000)).latest == ContextUsed(7, 2000)


def test_a_conversation_that_gets_long_is_told_once_until_it_is_short_again():
    gauge = ContextGauge(1000)
    told = [gauge.nears_end(0.8, used) for used in (700, 799, 800, 950, 300, 810)]
    assert told == [False, False, True, False, False, True]


def test_the_notice_comes_at_four_fifths_or_where_the_settings_shorten_earlier():
    assert ContextGauge(1000).nears_end(0.95, 800)
    assert ContextGauge(1000).nears_end(0.5, 500)
    assert not ContextGauge().nears_end(0.8, 102_000)
    assert ContextGauge().nears_end(0.8, 102_400)


def test_a_shortening_that_begins_unannounced_is_told_and_an_announced_one_is_not():
    gauge = ContextGauge(1000)
    assert gauge.nears_end(0.8)
    assert not gauge.nears_end(0.8)
    assert not gauge.nears_end(0.8, 900)
