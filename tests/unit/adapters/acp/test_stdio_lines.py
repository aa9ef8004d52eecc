"""Framing: however a stream is cut into chunks, the same lines come out, at a cost linear in its bytes."""

from __future__ import annotations

import sys
import tracemalloc

import hypothesis
import hypothesis.strategies as st
import pytest

from punie.mechanics.jsonrpc.lines import LineSplitter, Oversized


def split(chunks: list[bytes], max_line_bytes: int = 2**20, *, ended: bool = True) -> list[bytes | Oversized]:
    splitter = LineSplitter(max_line_bytes)
    for chunk in chunks:
        splitter.feed(chunk)
    if ended:
        splitter.finish()
    found: list[bytes | Oversized] = []
    while (line := splitter.pop()) is not None:
        found.append(line if isinstance(line, Oversized) else bytes(line))
    return found


def cut(stream: bytes, size: int) -> list[bytes]:
    return [stream[start : start + size] for start in range(0, len(stream), size)]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_lines_are_the_same_however_the_stream_is_cut(size: int):
    assert split(cut(b"one\n\ntwo\r\n three \nrest", size)) == [b"one", b"", b"two\r", b" three ", b"rest"]


def test_a_line_is_held_until_its_newline_or_the_end_of_the_stream():
    assert split([b"one\ntw"], ended=False) == [b"one"]
    assert split([b"one\ntw"]) == [b"one", b"tw"]
    assert split([b"one\n"]) == [b"one"]
    assert split([]) == []


@hypothesis.given(st.lists(st.binary(max_size=12), max_size=12), st.integers(1, 9), st.integers(1, 20))
def test_a_line_over_the_cap_is_replaced_by_its_size_and_the_others_are_kept(
    pieces: list[bytes], size: int, max_line_bytes: int
):
    lines = b"".join(pieces).split(b"\n")
    expected = lines[:-1] if lines[-1] == b"" else lines
    found = split(cut(b"\n".join(lines), size), max_line_bytes)
    for line, got in zip(expected, found, strict=True):
        if len(line) <= max_line_bytes:
            assert got == line
        else:
            assert isinstance(got, Oversized)
            assert (got.size_bytes, got.limit_bytes) == (len(line), max_line_bytes)
            assert line.startswith(got.head)


def test_the_head_of_an_oversized_line_is_kept_and_no_more():
    [line] = split(cut(b"{" + b"x" * 10_000 + b"}\n", 100), max_line_bytes=500)
    assert isinstance(line, Oversized)
    assert (line.size_bytes, line.limit_bytes) == (10_002, 500)
    assert line.head == b"{" + b"x" * 255


def test_memory_stays_near_the_cap_however_long_the_line_is():
    cap = 2**20
    chunk = b"x" * 2**16
    splitter = LineSplitter(cap)
    tracemalloc.start()
    try:
        for _ in range(64):
            splitter.feed(chunk)
        splitter.feed(b"\n")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * cap
    assert splitter.pop() == Oversized(64 * 2**16, cap, chunk[:256])


def test_a_large_line_costs_little_more_than_its_own_size():
    size = 8 * 2**20
    chunk = b"x" * 2**16
    splitter = LineSplitter(2 * size)
    tracemalloc.start()
    try:
        for _ in range(size // len(chunk)):
            splitter.feed(chunk)
        splitter.feed(b"\n")
        line = splitter.pop()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(line, bytearray)
    assert len(line) == size
    assert peak < 1.3 * size


def test_a_line_in_a_hundred_thousand_pieces_is_moved_in_memory_a_few_times_only():
    splitter = LineSplitter(2**26)
    sizes: set[int] = set()
    for _ in range(100_000):
        splitter.feed(b"1234567")
        sizes.add(sys.getsizeof(splitter._partial))
    assert len(sizes) < 200, "the buffer grows in steps, so the cost of a piece does not depend on what came before"
    splitter.feed(b"\n")
    assert splitter.pop() == b"1234567" * 100_000
