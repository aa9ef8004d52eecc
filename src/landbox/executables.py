"""Whether the kernel certainly runs a file, told by the first bytes of the file."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Mapping

_HEAD_BYTES = 4_096
_LINE_BYTES = 100  # of a #! line every kernel reads more
_SCRIPTS = 3  # a script's interpreter may be a script
_IDENTITY = slice(4, 6)  # ELF: the word's width, the bytes' order
_MACHINE = slice(18, 20)
_WIDE_LITTLE = b"\x02\x01"
_NAMES_LOADER = 3  # PT_INTERP


def runs_plainly(program: str, cwd: str, environment: Mapping[str, str]) -> bool:
    """Whether `program`, looked up as `exec` does, is certainly an executable of this machine. Blocks for a moment.

    Certain is a program for this processor whose loader exists, or a script whose interpreter is one. The kernel may
    run other programs too.
    """
    found = _found(program, cwd, environment)
    return found is not None and _plain(found, cwd, _SCRIPTS)


def _plain(path: str, cwd: str, scripts: int) -> bool:
    head = _head(path) if executable(path) else b""
    if head.startswith(b"#!"):
        line = head[2:].split(b"\n", 1)[0].strip(b" \t")
        interpreter = line.replace(b"\t", b" ").split(b" ", 1)[0]
        sure = scripts > 0 and 0 < len(interpreter) < _LINE_BYTES
        return sure and _plain(os.path.join(cwd, os.fsdecode(interpreter)), cwd, scripts - 1)
    return head.startswith(b"\x7fELF") and _is_of_this_machine(head) and _has_its_loader(head)


def _found(program: str, cwd: str, environment: Mapping[str, str]) -> str | None:
    if "/" in program:
        path = os.path.join(cwd, program)
        return path if executable(path) else None
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(cwd, folder, program)
        if executable(path):
            return path
    return None


def executable(path: str) -> bool:
    """Whether the path leads to a file that this user may execute. Never raises."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False


def _head(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(_HEAD_BYTES) or b""
    except OSError:
        return b""


def _is_of_this_machine(head: bytes) -> bool:
    ours = _head("/proc/self/exe")
    return len(head) >= 64 and head[_IDENTITY] == ours[_IDENTITY] == _WIDE_LITTLE and head[_MACHINE] == ours[_MACHINE]


def _has_its_loader(head: bytes) -> bool:
    """Whether the loader that a 64-bit little-endian ELF file names exists; True where it names none."""
    (table,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    for index in range(count):
        at = table + index * size
        if at + 56 > len(head):
            return False
        if struct.unpack_from("<I", head, at)[0] == _NAMES_LOADER:
            (start,) = struct.unpack_from("<Q", head, at + 8)
            (length,) = struct.unpack_from("<Q", head, at + 32)
            name = head[start : start + length].rstrip(b"\0")
            return len(name) + 1 == length and executable(os.fsdecode(name))
    return True
