"""The end of a stream: whole characters, bounded memory, whatever the chunks are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punie.adapters.local.programs.spool import TailBuffer

chunked = st.lists(
    st.binary(max_size=12) | st.text(max_size=6).map(lambda text: text.encode("utf-8", "replace")), max_size=12
)


def filled(chunks: list[bytes], limit: int) -> TailBuffer:
    buffer = TailBuffer(limit)
    for chunk in chunks:
        buffer.append(chunk)
    return buffer


@given(
    text=st.text(alphabet="aä你🐍\n", max_size=60),
    cuts=st.lists(st.integers(1, 7), max_size=60),
    limit=st.integers(0, 40),
)
def test_it_is_the_longest_end_of_whole_characters_that_fits(text: str, cuts: list[int], limit: int) -> None:
    data = text.encode()
    chunks: list[bytes] = []
    rest = data
    for cut in cuts:
        chunks.append(rest[:cut])
        rest = rest[cut:]
    buffer = filled([*chunks, rest], limit)
    kept = buffer.text(final=True)
    assert text.endswith(kept)
    assert len(kept.encode()) <= limit
    missing = text[: len(text) - len(kept)]
    assert buffer.truncated is (len(data) > limit)
    assert not missing or len((missing[-1] + kept).encode()) > limit


@given(chunks=chunked, limit=st.integers(0, 30))
def test_any_bytes_in_any_chunks_give_the_same_text(chunks: list[bytes], limit: int) -> None:
    whole = b"".join(chunks)
    in_pieces, at_once = filled(chunks, limit), filled([whole], limit)
    assert in_pieces.text(final=True) == at_once.text(final=True)
    assert in_pieces.truncated is at_once.truncated is (len(whole) > limit)
    if len(whole) <= limit:
        assert at_once.text(final=True) == whole.decode("utf-8", "replace")


def test_a_character_that_is_still_on_its_way_is_not_shown_yet() -> None:
    buffer = filled([b"caf\xc3"], 100)
    assert buffer.text(final=False) == "caf"
    assert buffer.text(final=True) == "caf\ufffd"
    buffer.append(b"\xa9")
    assert buffer.text(final=False) == "café"


@pytest.mark.parametrize("limit", [0, 10, 1000])
def test_the_memory_stays_within_twice_the_limit_and_a_chunk(limit: int) -> None:
    buffer = TailBuffer(limit)
    for _ in range(2_000):
        buffer.append(b"x" * 100)
        assert len(buffer._kept) <= 2 * limit + 100
    assert len(buffer.text(final=True)) == limit
