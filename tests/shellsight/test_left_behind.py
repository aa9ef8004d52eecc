"""Loops that leave processes behind, as a class: whatever is repeated, and wherever the `&` stands."""

from __future__ import annotations

import pytest

from shellsight.report import Effect, Standing
from tests.shellsight.shell_lines import report, standing

ENDLESS = (
    "while :; do sleep 999 & done",
    "while true\ndo\n  sleep 999 &\ndone",
    "until false; do sleep 9 & done",
    "while true; do (sleep 9 &); done",
    "while true; do { sleep 9 & }; done",
    "while true; do sleep 9 | cat & done",
    "while :; do if true; then sleep 9 & fi; done",
    "while sleep 0 & do :; done",
    "while :; do x=$(sleep 9 & echo); done",
    "while :; do echo $(sleep 9 &) > /dev/null; done",
    "while :; do sh -c 'sleep 9 &'; done",
    "while :; do timeout 9 sh -c 'sleep 9 &'; done",
    "sh -c 'while :; do sleep 9 & done'",
    "while :; do setsid sleep 9; done",
    "while :; do setsid -f sleep 9; done",
    "yes | while read x; do sleep 999 & done",
    "for i in $(seq 10000); do sleep 99 & done",
    "for i in `seq 10000`; do sleep 99 & done",
    "for i in {1..9999}; do sleep 9 & done",
    "for a in 1 2 3 4 5 6 7; do for b in 1 2 3 4 5 6 7; do for c in 1 2 3 4 5 6 7; do sleep 9 & done; done; done",
    "for a in *; do for b in *; do for c in *; do sleep 9 & done; done; done",
    "seq 9999 | xargs -n1 sh -c 'sleep 9 &'",
    "find . -exec sh -c 'sleep 9 &' \\;",
)
BOUNDED = (
    "for f in src/*.py; do wc -l $f & done; wait",
    "for a in 1 2 3; do sleep $a & done; wait",
    "sleep 5 & wait",
    "while :; do sleep 1; done",
    "while read line; do echo $line; done < notes.txt",
    "(sleep 5 &)",
    "while :; do break; done & wait",
)


@pytest.mark.parametrize("line", ENDLESS)
def test_a_loop_that_leaves_processes_behind_is_dangerous(line: str) -> None:
    found = report(line)
    assert found.standing >= Standing.DANGEROUS
    assert any(Effect.PROCESS in part.effects for part in found.parts)


@pytest.mark.parametrize("line", BOUNDED)
def test_a_loop_that_ends_or_waits_for_its_commands_is_not(line: str) -> None:
    assert standing(line) is Standing.SAFE


@pytest.mark.parametrize(
    "line",
    ["for ((;;)); do sleep 9 & done", "f() { g & }; g() { f & }; f", "f() { sleep 9 & f; }; f", "coproc sleep 9"],
)
def test_other_ways_to_repeat_are_not_understood(line: str) -> None:
    assert standing(line) >= Standing.UNKNOWN


@pytest.mark.parametrize("number", ["0", "00", "9999", "$n", "-1"])
@pytest.mark.parametrize("option", ["-P", "-P ", "--max-procs="])
def test_xargs_starts_a_bounded_number_of_processes_from_words_of_any_origin(option: str, number: str) -> None:
    assert standing(f"yes 9 | xargs -n1 {option}{number} sleep") is Standing.UNKNOWN


def test_xargs_may_start_many_processes_for_the_files_of_the_project() -> None:
    assert standing("find . -name '*.py' -print0 | xargs -0 -P0 wc -l") is Standing.SAFE
    assert standing("seq 9 | xargs -n1 -P4 echo") is Standing.SAFE
