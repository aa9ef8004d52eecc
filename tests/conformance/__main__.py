"""`make conformance`: a line a scenario; exit code 1 where one fails, with what the suite said of it."""

from __future__ import annotations

import sys

from tests.conformance.suite import SCENARIOS, missing_reason, run_scenario


def main(wanted: list[str]) -> int:
    """Run the scenarios of those names, or all."""
    if (reason := missing_reason()) is not None:
        print(reason, file=sys.stderr)
        return 1
    scenarios = [each for each in SCENARIOS if not wanted or each[0] in wanted]
    failed = 0 if scenarios else 1
    for scenario, version in scenarios:
        verdict = run_scenario(scenario, version)
        word = "passed" if verdict.passed else "FAILED"
        print(f"{word}  {scenario} at {version}: {verdict.tally} ({verdict.seconds:.1f} s)", flush=True)
        if not verdict.passed:
            failed += 1
            print(verdict.output, file=sys.stderr)
    print(f"conformance: {len(scenarios) - failed} of {len(scenarios)} passed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
