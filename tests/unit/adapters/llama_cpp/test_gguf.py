"""The head of a model file: what it says is found, and a file that is none is refused with the reason."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from punie.domain.errors import EngineError
from punie_gguf.gguf import MAX_CONTEXT_TOKENS, MIN_CONTEXT_TOKENS, ModelFile, read_model_file
from punie_gguf.memory import free_bytes, in_words
from tests.tiny_gguf import EMBEDDING, MAGIC, tiny_model


def refused(path: Path) -> str:
    with pytest.raises(EngineError) as caught:
        read_model_file(str(path))
    assert caught.value.kind == "configuration"
    assert str(path) in caught.value.cause
    return caught.value.cause


def test_what_a_file_says_of_its_model_is_found(tmp_path: Path) -> None:
    path = tiny_model(tmp_path / "m.gguf", context_tokens=2048)
    file = read_model_file(str(path))
    assert file == ModelFile(str(path), path.stat().st_size, 2048, 2 * EMBEDDING * 2)
    assert file.name == "m.gguf"


def test_heads_that_differ_by_layer_are_added_up(tmp_path: Path) -> None:
    path = tiny_model(tmp_path / "m.gguf", extra={"llama.attention.head_count_kv": [1, 2, 1]})
    assert read_model_file(str(path)).cache_bytes == 2 * 4 * EMBEDDING * 2


def test_a_model_that_says_little_is_taken_for_a_large_one(tmp_path: Path) -> None:
    path = tiny_model(tmp_path / "m.gguf", extra={"general.architecture": "other"})
    file = read_model_file(str(path))
    assert file.context_tokens == MIN_CONTEXT_TOKENS
    assert file.cache_bytes == 131_072


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "does not begin like one"),
        (b"PK\x03\x04 a zip file", "does not begin like one"),
        (MAGIC, "ends too early"),
        (MAGIC + struct.pack("<IQQ", 1, 0, 0), "version is 1"),
        (MAGIC + struct.pack(">IQQ", 3, 0, 0), "version is 50331648"),
        (MAGIC + struct.pack("<IQQ", 3, 0, 1 << 60), "more entries than any has"),
        (MAGIC + struct.pack("<IQQQ", 3, 0, 1, 1 << 60), "too long"),
        (MAGIC + struct.pack("<IQQ", 3, 0, 0), "names no architecture"),
        (MAGIC + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"k", 99), "unknown kind 99"),
        (MAGIC + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 4, 1 << 60), "a form that is not known"),
        (MAGIC + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 9, 1), "a form that is not known"),
    ],
    ids=["empty", "zip", "only-magic", "old", "big-endian", "pairs", "key", "no-pairs", "kind", "long-list", "lists"],
)
def test_a_file_that_is_no_model_is_refused_with_the_reason(tmp_path: Path, data: bytes, why: str) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    assert why in refused(path)


def test_a_file_that_is_not_there_or_is_a_folder_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "none.gguf")
    assert "cannot be opened" in refused(tmp_path)


@settings(deadline=None, max_examples=60)
@given(place=st.integers(0, 1_200), data=st.binary(min_size=1, max_size=8))
def test_a_damaged_head_is_read_or_refused(place: int, data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tiny_model(tmp_path_factory.mktemp("damaged") / "m.gguf")
    whole = bytearray(path.read_bytes())
    whole[place : place + len(data)] = data
    path.write_bytes(whole)
    with contextlib.suppress(EngineError):  # any other error fails the test
        file = read_model_file(str(path))
        assert file.context_tokens > 0
        assert file.cache_bytes > 0


def test_the_context_is_what_the_model_takes_within_reason_and_memory() -> None:
    large = ModelFile("m", 1_000_000_000, 131_072, 100_000)
    assert large.context_within(None) == MAX_CONTEXT_TOKENS
    assert large.context_within(100_000_000_000) == MAX_CONTEXT_TOKENS
    assert large.context_within(4_000_000_000) == 16_384
    assert large.context_within(0) == MIN_CONTEXT_TOKENS
    assert not large.fits(1_000_000_000, MIN_CONTEXT_TOKENS)
    assert ModelFile("m", 1, 512, 1).context_within(0) == 512


def test_free_memory_is_known_here_and_told_in_words() -> None:
    assert (free_bytes() or 0) > 10_000_000
    assert in_words(1_073_741_824 * 9) == "9.0 GB"
    assert in_words(102_528) == "0.1 MB"
