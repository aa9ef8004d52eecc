"""The shell's own commands: which variables they fill, which names they change, and what is left of a known value."""

from __future__ import annotations

import pytest

from shellsight.report import Standing
from tests.shellsight.shell_lines import report, standing


@pytest.mark.parametrize(
    "line",
    [
        *("getopts ab: option", "read FILE", "read -r line", "unset x", "unset -v x y", "FILE=a; cat a"),
        *("trap", "trap -p", "trap -l", "kill -l", "kill -0 12", "command", "command -p", "command -v git"),
        *("printenv LANG", "printenv SHELL", "local x=1", "local x=$y", "set -e", "set -euo pipefail", "logout"),
    ],
)
def test_looking_and_variables_of_the_line_are_safe(line: str) -> None:
    assert standing(line) is Standing.SAFE


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("getopts ab: PATH", "a variable that programs look at"),
        ("getopts ab:", "no variable"),
        ("unset PATH", "a variable that programs look at"),
        ("unset -f git", "a function that guards a name"),
        ("unset $x", "nobody knows which"),
        ("unset 'a[$(id)]'", "an index is computed"),
        ("local PATH=/tmp", "a variable that programs look at"),
        ("local $x", "nobody knows which"),
        ("set", "shows every variable"),
        ("printenv", "shows every variable"),
        ("printenv LANG API_TOKEN", "one of them holds a secret"),
        ("kill -9 1", "ends a process"),
        ("kill -l -9 1", "words that nobody looked at"),
    ],
)
def test_what_programs_see_and_what_holds_secrets_is_dangerous(line: str, why: str) -> None:
    assert standing(line) >= Standing.DANGEROUS, why


def test_switches_of_the_shell_that_nobody_listed_are_unknown() -> None:
    assert standing("set -o vi") is Standing.UNKNOWN
    assert standing("set -k") is Standing.UNKNOWN


def test_a_trap_holds_code_for_later() -> None:
    assert standing("trap 'rm -rf /' EXIT") is Standing.FORBIDDEN


@pytest.mark.parametrize("print_", ["echo", "echo -n", "echo -e", "echo -E -n", "printf '%s'", "printf '%s\\n'"])
def test_what_is_printed_into_a_shell_is_looked_at(print_: str) -> None:
    assert standing(f"{print_} 'rm -rf /' | sh") is Standing.FORBIDDEN


def test_what_a_substitution_prints_is_the_program() -> None:
    assert standing("$(echo -n rm) -rf /") is Standing.FORBIDDEN
    assert standing("x=$(echo -n rm); $x -rf /") is Standing.FORBIDDEN


def test_words_that_a_value_splits_into_are_words_of_the_command() -> None:
    assert standing("x='-rf /'; rm $x") is Standing.FORBIDDEN
    # A pattern among them may become any number of words.
    assert standing("x='ls *'; $x") > Standing.SAFE


def test_a_folder_that_a_link_may_lead_to_is_not_known_any_more() -> None:
    reasons = [part.reason for part in report("cd -P link/.. && cat a").parts]
    assert any("nobody knows in which directory" in reason for reason in reasons)
    assert standing("cd -P src && cat a") is Standing.SAFE


def test_a_sum_that_may_run_something_is_unknown_as_a_value_and_as_text() -> None:
    assert standing("x=$((a[b]))") >= Standing.UNKNOWN
    assert standing("cat <<< $((a[b]))") >= Standing.UNKNOWN


@pytest.mark.parametrize(
    "line",
    ["f() { f | f & }; f", "f() { (f | f) & }; f", "f() { if true; then f & fi; }; f", "f() { [[ a = b ]] | f; }; f"],
)
def test_a_function_that_starts_itself_side_by_side_is_forbidden(line: str) -> None:
    assert standing(line) is Standing.FORBIDDEN


@pytest.mark.parametrize(
    "line", ["f() { ls; }; f", "f() { [[ a = b ]]; }; f", "f() { g & }; f", "f() { if f; then ls; fi; }; f"]
)
def test_other_functions_are_no_bombs(line: str) -> None:
    assert standing(line) < Standing.FORBIDDEN


def test_a_line_with_more_ways_than_anyone_can_look_at_is_not_safe_by_that() -> None:
    loops = "".join(f"for {name} in 1 2 3 4 5 6 7 8 9; do " for name in "abcdef")
    line = f"{loops}rm -rf $a$b$c$d$e$f; {'done; ' * 6}"
    assert standing(line) >= Standing.DANGEROUS
    assert standing(line.replace("rm -rf", "echo")) <= Standing.UNKNOWN


def test_a_line_of_very_many_commands_is_not_safe_and_a_strict_one_among_them_counts() -> None:
    many = "; ".join(f"echo {number}" for number in range(2_100))
    assert standing(many) >= Standing.UNKNOWN
    assert standing(f"rm -rf /; {many}") is Standing.FORBIDDEN
