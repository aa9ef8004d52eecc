"""The picture in the clipboard of a desktop, read by the program that the desktop has for it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from punie.domain.values.file_kind import PICTURE_LIMIT_BYTES
from punie.mechanics.piped_process import PipedProcess, start_piped

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
