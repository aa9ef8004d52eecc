"""Pasted texts and pictures in the line of `punie chat`: a long text and a picture are one word there.

The picture in the clipboard of a desktop is read by the program that the desktop has for it.
"""

from __future__ import annotations

import base64
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread
from attrs import define, field

from punie.domain.values.content import Image
from punie.domain.values.display import counted
from punie.domain.values.file_kind import PICTURE_LIMIT_BYTES, picture_type
from punie.mechanics.piped_process import PipedProcess, start_piped

PASTED_LINES: Final = 8
PASTED_CHARS: Final = 1_000
"""A longer pasted text is shown as its size."""

PICTURES_LIMIT: Final = 20
"""Pictures that are kept; a further one takes the place of the oldest."""

_SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})


@define(eq=False)
class Pasted:
    """Pasted texts and pictures by their words; lives as long as the conversation."""

    _texts: dict[str, str] = field(factory=dict[str, str], init=False)
    _pictures: dict[str, Image] = field(factory=dict[str, Image], init=False)
    _count: int = field(default=0, init=False)

    def word(self, text: str) -> str:
        """The text for the line: the pasted one, or a word for a long one, or for the picture whose path was pasted.

        The picture of a path is read here: who drags a file to the terminal gives it away, wherever it is.
        """
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if (path := _dragged(text)) is not None and (word := self.picture(_read(path), path.name)) is not None:
            return f"{word} "
        lines = len(text.removesuffix("\n").split("\n"))
        if lines <= PASTED_LINES and len(text) <= PASTED_CHARS:
            return text
        word = self._word("pasted text", counted(lines, "line") if lines > 1 else counted(len(text), "character"))
        self._texts[word] = text
        return word

    def picture(self, data: bytes, name: str = "") -> str | None:
        """A word for a picture; None where the bytes are none, or too many."""
        kind = picture_type(data)
        if kind is None or len(data) > PICTURE_LIMIT_BYTES:
            return None
        name = "".join(sign for sign in name if sign.isprintable() and sign not in "[]")[:40]
        word = self._word("picture", f"{name or kind}, {len(data) // 1000 + 1} kB")
        if len(self._pictures) == PICTURES_LIMIT:
            self._pictures.pop(next(iter(self._pictures)))
        self._pictures[word] = Image(base64.b64encode(data).decode("ascii"), kind)
        return word

    def whole(self, line: str) -> str:
        """The line with every pasted text in its place; the words of pictures stay, so that it can speak of them."""
        for word, text in self._texts.items():
            line = line.replace(word, text)
        return line

    def pictures(self, line: str) -> tuple[Image, ...]:
        """The pictures whose words are in the line, as it was typed."""
        return tuple(picture for word, picture in self._pictures.items() if word in line)

    def _word(self, what: str, about: str) -> str:
        self._count += 1
        return f"[{what} {self._count}: {about}]"


def _dragged(pasted: str) -> Path | None:
    """The path of a picture that was dragged to the terminal, which pastes it quoted, escaped or as an address."""
    text = pasted.strip()
    if len(text) > 2_000 or Path(text.rstrip("'\"")).suffix.lower() not in _SUFFIXES:
        return None
    try:
        (path,) = shlex.split(text) if os.sep == "/" else [text]
        found = Path(unquote(urlsplit(path).path) if path.startswith("file://") else path)
        return found if found.is_absolute() and found.is_file() else None
    except (OSError, ValueError):
        return None


def _read(path: Path) -> bytes:
    """The bytes of a file, cut behind the limit for pictures; empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(PICTURE_LIMIT_BYTES + 1)
    except OSError:
        return b""


READ_LIMIT_S: Final = 5.0
"""How long the program may take: the clipboard's owner is another program, which may not answer."""

_WAYLAND: Final = ("wl-paste", "--no-newline", "--type", "image/png")
_X11: Final = ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")
_MACOS: Final = ("osascript", "-e", "the clipboard as \u00abclass PNGf\u00bb")
_PACKAGES: Final = {"wl-paste": "wl-clipboard", "xclip": "xclip", "osascript": "osascript"}
_AS_DIGITS: Final = re.compile(rb"\A\xc2\xab ?data PNGf([0-9A-F]+)\xc2\xbb\s*\Z")

NOWHERE: Final = "No desktop's clipboard is reached from here. Write @FILE for a picture in a file."
NONE: Final = "There is no picture in the clipboard."
SILENT: Final = "The clipboard did not answer in time."


class ClipboardError(Exception):
    """There is no picture to be had; the message says why, to a person."""


async def clipboard_picture(environ: Mapping[str, str], platform: str = sys.platform) -> bytes:
    """The bytes of the picture in the clipboard, more than `PICTURE_LIMIT_BYTES` where it is too large.

    Raises `ClipboardError`.
    """
    words = _reader(environ, platform)
    if words is None:
        raise ClipboardError(NOWHERE)
    path = _absolute(environ.get("PATH", os.defpath))
    program = await anyio.to_thread.run_sync(partial(shutil.which, words[0], path=path))
    if program is None:
        raise ClipboardError(f"A picture is read from the clipboard by {words[0]}: install {_PACKAGES[words[0]]}.")
    try:
        with anyio.fail_after(READ_LIMIT_S):
            data = await _output([program, *words[1:]], environ, 2 * PICTURE_LIMIT_BYTES + 64)
    except TimeoutError as error:
        raise ClipboardError(SILENT) from error
    except OSError as error:
        raise ClipboardError(f"{words[0]} cannot be run: {error.strerror}.") from error
    if digits := _AS_DIGITS.match(data):
        data = bytes.fromhex(digits[1].decode("ascii"))
    if not data:
        raise ClipboardError(NONE)
    return data


def _reader(environ: Mapping[str, str], platform: str) -> tuple[str, ...] | None:
    if platform == "darwin":
        return _MACOS
    if environ.get("WAYLAND_DISPLAY"):
        return _WAYLAND
    return _X11 if environ.get("DISPLAY") else None


def _absolute(path: str) -> str:
    """The search path without the folders that depend on where Punie was started: a project is no desktop."""
    return os.pathsep.join(folder for folder in path.split(os.pathsep) if Path(folder).is_absolute())


async def _output(argv: Sequence[str], environ: Mapping[str, str], limit: int) -> bytes:
    """The output of the program, cut soon after `limit` bytes; it is dead when this returns."""
    process = PipedProcess(await anyio.to_thread.run_sync(start_piped, argv, "/", environ))
    data = bytearray()
    try:
        while len(data) <= limit and (chunk := await process.read()):
            data += chunk
    finally:
        process.kill_group()
        with anyio.CancelScope(shield=True):
            await process.end()
        process.free()
    return bytes(data)
