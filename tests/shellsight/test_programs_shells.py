"""Shells, interpreters and wrappers: which of their words is what runs, as their manuals say."""

from __future__ import annotations

import pytest

from shellsight.report import Standing
from tests.shellsight.shell_lines import report, standing


@pytest.mark.parametrize(
    "line",
    [
        "bash -euo pipefail -c 'rm -rf /'",
        "bash -eo pipefail -c 'rm -rf /'",
        "bash -o pipefail -c 'rm -rf /'",
        "bash +o posix -c 'rm -rf /'",
        "bash -c -o errexit 'rm -rf /'",
        "bash -co errexit 'rm -rf /'",
        "bash -c -e 'rm -rf /'",
        "bash -c +x 'rm -rf /'",
        "bash -c -- 'rm -rf /'",
        "bash -O extglob -c 'rm -rf /'",
        "bash --norc --login -c 'rm -rf /'",
        "sh -ec 'rm -rf /'",
    ],
)
def test_a_shells_code_is_found_behind_whatever_options_stand_before_it(line: str) -> None:
    assert standing(line) is Standing.FORBIDDEN


def test_options_that_only_set_switches_leave_the_code_what_it_is() -> None:
    assert standing("bash -euo pipefail -c 'ls'") is Standing.SAFE
    assert standing("bash -c -- 'ls -la'") is Standing.SAFE
    assert standing("bash -euo pipefail tools/run.sh") is Standing.ORDINARY


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("bash -o $x -c ls", "its words are not certain"),
        ("bash -$x run.sh", "its words are not certain"),
        ("bash -eopipefail -c ls", "one shell takes the rest of the word for the option's name, another the next word"),
        ("bash --rcfile x run.sh", "another file's settings"),
        ("bash --init-file x run.sh", "another file's settings"),
        ("zsh --emulate sh -c ls", "a long option with a word behind it"),
        ("zsh -O run.sh ls", "a letter that takes a word in bash alone"),
        ("fish --command 'rm -rf build'", "code behind a long option"),
        ("fish --init-command='rm -rf build' run.fish", "code glued to a long option"),
        ("fish -C 'rm -rf build' run.fish", "code before the script"),
        ("fish -c'rm -rf build' ls", "code glued to a letter"),
        ("fish -c ls -c 'rm -rf build'", "more than one text of code"),
        ("bash -c", "nobody knows the code"),
        ("bash -c $x", "nobody knows the code"),
    ],
)
def test_a_shell_told_in_a_way_that_hides_what_runs_is_dangerous(line: str, why: str) -> None:
    assert standing(line) is Standing.DANGEROUS, why


@pytest.mark.parametrize("shell", ["fish", "csh", "tcsh"])
def test_code_in_another_grammar_is_not_judged_safe_by_ours(shell: str) -> None:
    assert standing(f"{shell} -c ls") is Standing.UNKNOWN
    assert standing(f"{shell} -c 'rm -rf /'") is Standing.FORBIDDEN


@pytest.mark.parametrize(
    "line", ["bash -n run.sh", "sh -nv run.sh", "php -l a.php", "node --check a.js", "ruby -c a.rb"]
)
def test_checking_a_scripts_grammar_runs_nothing_of_it(line: str) -> None:
    assert standing(line) is Standing.SAFE


@pytest.mark.parametrize("line", ["bash -ni run.sh", "bash -n +n run.sh", "perl -c a.pl", "node -c -r ./x a.js"])
def test_a_grammar_check_that_another_word_takes_back_is_none(line: str) -> None:
    assert standing(line) > Standing.SAFE


def test_words_behind_a_script_are_its_own() -> None:
    assert standing("node -c a.js -r ./x") is Standing.SAFE


def test_words_behind_two_dashes_are_the_script_and_its_words() -> None:
    assert standing("python -- run.py") is Standing.ORDINARY
    assert standing("node -- -e.js") is Standing.ORDINARY
    assert standing("python -- /tmp/run.py") is Standing.UNKNOWN


def test_an_interpreter_told_something_uncertain_is_dangerous() -> None:
    assert standing("python $x") is Standing.DANGEROUS
    assert standing("python -$x run.py") is Standing.DANGEROUS


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("watch ls", Standing.ORDINARY),
        ("watch rm -rf /", Standing.FORBIDDEN),
        ("watch", Standing.UNKNOWN),
        ("watch --foo ls", Standing.UNKNOWN),
        ("watch 'ls '$x", Standing.DANGEROUS),
        ("flock .lock ls", Standing.ORDINARY),
        ("flock .lock -c 'rm -rf /'", Standing.FORBIDDEN),
        ("flock .lock --command 'rm -rf /'", Standing.FORBIDDEN),
        ('flock .lock -c "$x"', Standing.DANGEROUS),
        ("flock .lock", Standing.UNKNOWN),
        ("flock --foo .lock ls", Standing.UNKNOWN),
        ("entr make test", Standing.ORDINARY),
        ("entr -cs 'rm -rf /'", Standing.FORBIDDEN),
        ("entr -s 'make test'", Standing.ORDINARY),
        ('entr -s "$x"', Standing.DANGEROUS),
        ("entr -s", Standing.ORDINARY),
        ("su -c 'rm -rf /'", Standing.FORBIDDEN),
        ("su me --command 'rm -rf /'", Standing.FORBIDDEN),
        ("su", Standing.DANGEROUS),
        ("su -c", Standing.DANGEROUS),
        ("su - root", Standing.DANGEROUS),
        ("script -c 'rm -rf /' out", Standing.FORBIDDEN),
        ("script out", Standing.UNKNOWN),
        ("script -q -c", Standing.UNKNOWN),
        ("sudo A=b rm -rf /", Standing.FORBIDDEN),
        ("sudo A=b C=d ls", Standing.DANGEROUS),
        ("sudo A=b", Standing.DANGEROUS),
        ("valgrind --version", Standing.SAFE),
        ("valgrind --leak-check=full", Standing.ORDINARY),
        ("valgrind rm -rf /", Standing.FORBIDDEN),
        ("cmake -E env --unset=X A=b rm -rf /", Standing.FORBIDDEN),
        ("cmake -E time rm -rf /", Standing.FORBIDDEN),
        ("cmake -E rm a", Standing.DANGEROUS),
    ],
)
def test_a_wrapper_stands_where_what_it_runs_stands_or_higher(line: str, expected: Standing) -> None:
    assert standing(line) is expected


@pytest.mark.parametrize(
    "line",
    [
        "hyperfine 'rm -rf /'",
        "hyperfine --prepare 'rm -rf /' ls",
        "hyperfine --prepare='rm -rf /' ls",
        "hyperfine -p'rm -rf /' ls",
        "hyperfine --cleanup='rm -rf /' ls",
    ],
)
def test_each_line_that_hyperfine_hands_to_a_shell_is_looked_at(line: str) -> None:
    assert standing(line) is Standing.FORBIDDEN


def test_hyperfines_numbers_are_no_lines() -> None:
    assert standing("hyperfine --warmup=3 -r5 ls") is Standing.ORDINARY
    assert standing("hyperfine ls $x") is Standing.DANGEROUS
    assert standing("hyperfine --version") is Standing.SAFE


def test_wrappers_around_wrappers_end_somewhere() -> None:
    told = report("nice " * 400 + "ls")
    assert told.standing >= Standing.UNKNOWN
    assert any("too many" in part.reason or "too deeply" in part.reason for part in told.parts)
