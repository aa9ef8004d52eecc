"""A file that is no text is named for what it is, whether its bytes came or somebody decoded them already."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punie.domain.values.file_kind import kind_of, looks_binary

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (PNG, "a PNG image"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "a JPEG image"),
        (b"%PDF-1.7\n", "a PDF document"),
        (b"PK\x03\x04\x14\0", "a ZIP archive"),
        (b"\x7fELF\x02\x01", "an ELF program"),
        (b"\xff\xfeh\0i\0", "text in UTF-16"),
        (b"\x01\x02", "binary data"),
        (b"", "binary data"),
    ],
)
def test_a_kind_is_told_from_the_first_bytes(head: bytes, kind: str) -> None:
    assert kind_of(head).startswith(kind)


def test_an_image_that_a_client_decoded_is_still_known() -> None:
    text = PNG.decode("utf-8", "replace")
    assert looks_binary(text)
    assert kind_of(text.encode()) == "a PNG image"
    assert kind_of(text.replace("\r\n", "\n").encode()) == "a PNG image"


@given(st.text(st.characters(min_codepoint=32, exclude_characters="\x7f\ufffd", exclude_categories=("Cs",))))
def test_text_of_any_script_is_text(text: str) -> None:
    assert not looks_binary(text)
    assert not looks_binary(f"\ufeff{text}\r\n\t\x1b[0m{text}")


@pytest.mark.parametrize("text", ["a\0", "\ufffd\ufffd\x01\x02abc", "\x01" * 50 + "a" * 100])
def test_nul_or_much_that_could_not_be_decoded_is_no_text(text: str) -> None:
    assert looks_binary(text)
