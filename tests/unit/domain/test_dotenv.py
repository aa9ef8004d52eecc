"""Files of variables, as an `envFile` names them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punie.domain.values.variables import DotenvError, parse_dotenv


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=1", "1"),
        ("\ufeffA=1\r", "1"),
        ("  export  A = 1  ", "1"),
        ("A=", ""),
        ("A= # nothing", ""),
        ("A=a b # comment", "a b"),
        ("A=a#b", "a#b"),
        ("A=it's", "it's"),
        ("A=x=y", "x=y"),
        ("A=$HOME ${TOKEN}", "$HOME ${TOKEN}"),
        ("A='a # b \\n'  # comment", "a # b \\n"),
        ('A="a # b"', "a # b"),
        (r'A="line\nnext\t\"q\" \\ \$X"', 'line\nnext\t"q" \\ $X'),
        ('A="two\nlines"', "two\nlines"),
        ("A='two\r\nlines'", "two\nlines"),
        ("A=1\nA=2", "2"),
        ("# A=2\n\nA=1\n\n   \n#", "1"),
    ],
)
def test_a_value_in_each_of_its_forms(line: str, value: str) -> None:
    assert parse_dotenv(line) == {"A": value}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("A", 1), ("=x", 1), ("A=1\n2B=3", 2), ("A=1\n\nA='open\nto the end", 3), ('A="x" y', 1), ("export A", 1),
        ("A=1\nA='x", 2), ("{", 1), ("A B=1", 1),
    ],
)  # fmt: skip
def test_a_line_of_no_form_is_told_by_its_number_alone(text: str, number: int) -> None:
    with pytest.raises(DotenvError) as raised:
        parse_dotenv(text)
    assert str(raised.value) == f"line {number} is not NAME=VALUE"


def variables_in(text: str) -> int | None:
    try:
        return len(parse_dotenv(text))
    except DotenvError:
        return None


@pytest.mark.timeout(10)
@pytest.mark.parametrize("piece", ["A='", 'A="\\', "A=#", " ", "\n", "export ", "A= #", "A=1\n"])
def test_a_file_made_to_be_slow_is_not(piece: str) -> None:
    assert variables_in(piece * 100_000) in {0, 1, None}


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


@given(st.dictionaries(NAMES, st.text().filter(lambda text: "'" not in text and "\r" not in text)))
def test_whatever_stands_in_single_quotes_comes_back(variables: dict[str, str]) -> None:
    assert parse_dotenv("".join(f"{name}='{value}'\n" for name, value in variables.items())) == variables
