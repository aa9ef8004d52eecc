"""The public MCP suite judges our adapter: here the scenarios that need the most of it, all by `make conformance`."""

from __future__ import annotations

import pytest

from tests.conformance.suite import HANDSHAKE, SCENARIOS, STATELESS, missing_reason, run_scenario

MISSING = missing_reason()
CHOSEN = [
    ("elicitation-sep1034-client-defaults", HANDSHAKE),
    ("sep-2322-client-request-state", STATELESS),
    ("json-schema-2020-12-preservation", STATELESS),
]


@pytest.mark.skipif(MISSING is not None, reason=MISSING or "")
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("scenario", "version"), CHOSEN, ids=" at ".join)
def test_a_scenario_of_the_public_suite_passes(scenario: str, version: str) -> None:
    assert (scenario, version) in SCENARIOS
    verdict = run_scenario(scenario, version)
    assert verdict.passed, verdict.output


@pytest.mark.skipif(MISSING is not None, reason=MISSING or "")
def test_the_suite_fails_a_scenario_that_it_does_not_know() -> None:
    assert not run_scenario("no-such-scenario", STATELESS).passed
