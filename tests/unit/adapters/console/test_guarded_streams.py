"""A guarded stream writes at once and never raises."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from punie.mechanics.output import exit_code_with_loss, guarded, loss


def written(text: str, encoding: str, errors: str = "strict") -> bytes:
    raw = io.BytesIO()
    stream = guarded(io.TextIOWrapper(raw, encoding=encoding, errors=errors))
    stream.write(text)
    return raw.getvalue()


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "utf-8", "koi8-r", "shift_jis"])
@pytest.mark.parametrize("errors", ["strict", "replace", "surrogateescape"])
def test_json_is_read_back_whole_in_every_encoding(encoding: str, errors: str) -> None:
    value = {"text": "a\u00e9\u2713\U0001f600\ud800 \udc80\x07\\u0041"}
    assert json.loads(written(json.dumps(value, ensure_ascii=False), encoding, errors).decode(encoding)) == value


def test_a_write_arrives_at_once_and_line_ends_stay() -> None:
    assert written("no line end", "utf-8") == b"no line end"
    assert written("a\r\nb\n", "utf-8") == b"a\r\nb\n"


def test_a_stream_without_bytes_below_and_a_guarded_one_are_returned_as_they_are() -> None:
    text, guard = io.StringIO(), guarded(io.TextIOWrapper(io.BytesIO()))
    assert (guarded(text), guarded(guard)) == (text, guard)
    assert loss(text) is None


def test_a_closed_stream_is_lost_and_says_so_once() -> None:
    below = io.TextIOWrapper(io.BytesIO())
    stream = guarded(below)
    below.close()
    for _ in range(3):
        assert stream.write("x") == 1
    assert isinstance(loss(stream), ValueError)


@pytest.fixture
def pipe() -> Iterator[tuple[int, TextIO]]:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as below:
        yield reading, guarded(below)


def test_a_reader_that_left_is_an_exit_code_without_a_word(
    pipe: tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reading, stream = pipe
    stream.write("x")
    monkeypatch.setattr(sys, "stdout", stream)
    assert exit_code_with_loss(0) == 0
    os.close(reading)
    stream.write("x")
    assert [exit_code_with_loss(code) for code in (0, 1, 3)] == [1, 1, 3]
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux's")
def test_a_full_disk_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", guarded(full))
        sys.stdout.write("x")
        assert exit_code_with_loss(0) == 1
    assert "No space left on device" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="pipes there have no such flag")
def test_a_stream_that_was_made_non_blocking_is_waited_for(pipe: tuple[int, TextIO]) -> None:
    reading, stream = pipe
    os.set_blocking(stream.fileno(), False)
    writer = threading.Thread(target=stream.write, args=("x" * 300_000,))
    writer.start()
    read = 0
    while read < 300_000:
        read += len(os.read(reading, 65_536))
    writer.join()
    assert loss(stream) is None
    os.close(reading)
