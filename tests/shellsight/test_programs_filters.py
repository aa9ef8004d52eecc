"""Filters, little languages and searchers: one word makes them write, decode, run or tell more than the rest."""

from __future__ import annotations

import pytest

from shellsight.report import PathEffect, PathUse, Standing
from shellsight.words.secrecy import could_be_private
from tests.shellsight.shell_lines import report, standing


@pytest.mark.parametrize(
    "line",
    [
        *("ps aux", "ps -ef", "ps -o pid,comm", "uniq -c a", "xxd a", "sort -u a", "sed --version", "awk --version"),
        *("yq '.a' x.yml", "yq eval '.a' x.yml", "yq e '.a' x.yml", "yq ea '.a' x.yml", "sed -n 1p <(ls)"),
        *("awk '{ print $1 }' a", "awk ' /x/ { print }' a", "fd foo src", "find . -name '*.py' -exec wc -l {} +"),
        *("head -20 a", "head -n 5 a"),
    ],
)
def test_plain_filters_only_look(line: str) -> None:
    assert standing(line) is Standing.SAFE


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("sort -o out $x", "nobody knows what is read"),
        ("sort -o $x a", "nobody knows what is written"),
        ("sort -o out -k $x a", "nobody knows the key"),
        ("uniq --foo", "an option that no table knows"),
        ("uniq $x", "it may be an option, or two files"),
        ("xxd --foo", "an option that no table knows"),
        ("xxd a $x", "it may be an option, or a file that is written"),
        ("ps $x", "the word may ask for environments"),
        ("awk", "no program"),
        ("grep -d recurse x .", "goes into folders in a roundabout way"),
        ("grep --directories=recurse x .", "goes into folders in a roundabout way"),
        ("find . -exec", "no command"),
        ("find . -exec ';'", "no command"),
        ("find . $x", "the word may be -delete"),
        ("fd foo $x", "the word may be -x, with a command behind it"),
        ("fd $x", "the word may be -x, with a command behind it"),
        ("fd foo src/$x", "nobody knows where it looks"),
        ("head -n $x a", "the value may be more than one word"),
        ("head -n", "no value"),
    ],
)
def test_a_word_that_is_missing_or_not_certain_leaves_it_unknown(line: str, why: str) -> None:
    assert standing(line) is Standing.UNKNOWN, why


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("ps -E", "environments hold secrets"),
        ("ps axE", "environments hold secrets, also in the old style"),
        ("ps eww", "environments hold secrets"),
        ("yq eval 'env(TOKEN)' x.yml", "shows the environment"),
        ("yq ea 'load(\".env\")' x.yml", "reads another file"),
        ("sed $x a", "a script that nobody knows"),
        ('sed "s/a/$x/" a', "a script that nobody knows"),
        ("sed 'w out' --version", "where options end at the first operand, the script runs"),
        ("sed '1e id' --help", "where options end at the first operand, the script runs"),
        ("awk --help 'BEGIN { system(\"id\") }'", "an awk that does not know the option goes on"),
        ("awk -V 'BEGIN { system(\"id\") }'", "an awk that does not know the option goes on"),
        ("awk '/[/ { system(\"id\") }' a", "a pattern that does not end"),
        ("awk '\"' a", "a text that does not end"),
        ("find . -exec rm -rf {}", "the command ends with the line"),
    ],
)
def test_what_runs_writes_or_shows_secrets_is_dangerous(line: str, why: str) -> None:
    assert standing(line) >= Standing.DANGEROUS, why


def test_a_second_operand_is_written() -> None:
    assert PathUse("/etc/x", PathEffect.WRITE) in report("uniq a /etc/x").paths
    assert PathUse("/etc/x", PathEffect.WRITE) in report("xxd -r a /etc/x").paths
    assert standing("uniq a b") is Standing.ORDINARY


def test_what_a_dump_is_turned_back_into_is_no_program() -> None:
    assert standing("xxd --foo -r a | sh") is Standing.FORBIDDEN


def test_a_pattern_of_slashes_alone_names_no_secret() -> None:
    assert not could_be_private("/")
    assert could_be_private("/*")
