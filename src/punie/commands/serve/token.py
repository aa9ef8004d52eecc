"""The token of `punie serve`: read from a file, or made at each start and left in a file for this user's clients."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import sys
from collections.abc import Generator
from pathlib import Path

from attrs import define

SHORTEST = 32
"""Characters of a given token; `secrets.token_urlsafe()` makes 43."""

LONGEST = 1_024
OWNER_ONLY_FOLDER = 0o700
OWNER_ONLY_FILE = 0o600


@define(eq=False)
class TokenError(Exception):
    """There is no usable token; the sentence says why and what to do."""

    words: str

    def __str__(self) -> str:
        return self.words


def read_token(path: Path) -> str:
    """The token in the file, without the white space around it. Raises `TokenError`."""
    try:
        token = path.read_text("ascii").strip()
    except OSError as error:
        raise TokenError(f"--token-file cannot be read: {error.strerror}. Name a file that can.") from error
    except UnicodeDecodeError as error:
        raise TokenError(
            "--token-file holds more than ASCII. Put one line of letters, digits, - and _ there."
        ) from error
    if not SHORTEST <= len(token) <= LONGEST:
        raise TokenError(f"--token-file has to hold a token of {SHORTEST} to {LONGEST} characters; make a random one.")
    if not all(sign.isalnum() or sign in "-_.~+/=" for sign in token):
        raise TokenError("--token-file holds signs that no token has. Put one line of letters, digits, - and _ there.")
    return token


def others_may_read(path: Path) -> bool:
    """Whether the file is open to other users of this machine; never where the system does not say."""
    return sys.platform != "win32" and bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))


@contextlib.contextmanager
def made_token(folder: Path, port: int) -> Generator[tuple[str, Path]]:
    """A new token and the file it stands in, for this user alone; the file goes when the server does.

    Raises `TokenError` where it cannot be written.
    """
    path, token = folder / f"serve-{port}.token", secrets.token_urlsafe()
    try:
        folder.mkdir(mode=OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY_FILE)
        try:
            os.write(descriptor, f"{token}\n".encode("ascii"))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise TokenError(f"The token cannot be written to {path}: {error.strerror}. Use --token-file.") from error
    try:
        yield token, path
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
