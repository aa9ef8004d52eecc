"""Lines that the parser says it has read mean the same to the shells of this machine."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shellsight.parser.tree_sitter_bash import TreeSitterBashParser
from tests.nightly import many
from tests.shellsight.made_lines import LINES
from tests.shellsight.real_shells import NOT_EVERYWHERE, SHELLS, Expected, NotTellable, logged

PARSER = TreeSitterBashParser()
UNHURRIED = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
BATCHES = many(3, 30)
LINES_A_BATCH = 250


def expected(line: str) -> Expected | None:
    """What the parser's tree says the line logs; None if it says nothing."""
    script = PARSER.parse(line)
    try:
        return Expected(script) if script.readable else None
    except NotTellable:
        return None


def fits(shell: str, line: str, wanted: Expected, found: list[tuple[str, ...]]) -> bool:
    """True if the shell ran just that; where it refuses some syntax, it may have run less, but nothing else."""
    if found == wanted.log:
        return True
    refuses = shell.startswith("zsh") or NOT_EVERYWHERE.search(line)
    return bool(refuses) and not Counter(found) - Counter(wanted.log)


@pytest.mark.skipif(not SHELLS, reason="no shell to ask on this machine")
@settings(max_examples=BATCHES, deadline=None, suppress_health_check=UNHURRIED)
@given(lines=st.lists(LINES, min_size=LINES_A_BATCH, max_size=LINES_A_BATCH))
def test_real_shells_run_what_the_tree_says(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    told = [(line, wanted) for line in lines if (wanted := expected(line))]
    folder: Path = tmp_path_factory.mktemp("shells")
    for shell in SHELLS:
        for (line, wanted), found in zip(told, logged(shell, [line for line, _ in told], folder), strict=True):
            assert fits(shell, line, wanted, found), f"{shell}: {line!r}: {wanted.log} but ran {found}"


@pytest.mark.skipif("dash" not in SHELLS, reason="no dash on this machine")
def test_the_oracle_notices_words_that_a_shell_reads_otherwise(tmp_path: Path) -> None:
    [ran] = logged("dash", ["p $'a'; p b"], tmp_path)
    assert ran == [("$a",), ("b",)]
    wanted = expected("p a; p b")
    assert wanted is not None
    assert not fits("dash", "p a; p b", wanted, ran)


def test_the_oracle_works_out_what_a_tree_logs() -> None:
    wanted = expected("p 'a b' | p c && ! p d || p x$(p e); h <<E\nf\nE\n")
    assert wanted is not None
    assert wanted.log == [("a b",), ("c",), ("d",), ("e",), ("h", "f\n."), ("x",)]
