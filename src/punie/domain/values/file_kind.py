"""The kind of a file that is not text, recognised by its first bytes."""

from __future__ import annotations

HEAD_BYTES = 8192
"""The bytes at the beginning that are looked at."""

PICTURE_LIMIT_BYTES = 4_000_000
"""The most bytes of a picture that is attached to a prompt."""

_PICTURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))

_CONTROL = frozenset(range(32)) - {9, 10, 12, 13, 27} | {127}
_NOT_TEXT_SHARE = 0.1

# Looked for among the first bytes, not at the very first: a client that decoded the file has changed some of them.
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"PNG\r\n", "a PNG image"),
    (b"PNG\n", "a PNG image"),
    (b"JFIF", "a JPEG image"),
    (b"Exif", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"WEBP", "a WebP image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or a document, wheel or jar, which are ZIP archives)"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"7zXZ", "xz data"),
    (b"\x7fELF", "an ELF program or library"),
    (b"\xcf\xfa\xed\xfe", "a macOS program or library"),
    (b"SQLite format 3", "an SQLite database"),
    (b"wOF2", "a font"),
)
_FAR = 20


def kind_of(head: bytes) -> str:
    """A few words for the kind of file that begins like this, such as "a PNG image"; "binary data" where unknown."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "text in UTF-16"
    near = head[:_FAR]
    return next((words for signature, words in _SIGNATURES if signature in near), "binary data")


def picture_type(data: bytes) -> str | None:
    """The MIME type of a picture that models take; None for other bytes."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _PICTURES if data.startswith(start)), None)


def looks_binary(text: str) -> bool:
    """Whether the text was decoded from other data: NUL characters, or many undecodable or control characters."""
    head = text[:HEAD_BYTES]
    if "\0" in head:
        return True
    odd = sum(char == "\ufffd" or ord(char) in _CONTROL for char in head)
    return odd > len(head) * _NOT_TEXT_SHARE


def looks_binary_bytes(data: bytes) -> bool:
    """As `looks_binary`, for bytes that do not decode: whether many of them are control characters."""
    return looks_binary(data[:HEAD_BYTES].decode("latin-1"))
