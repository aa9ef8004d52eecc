"""The project's prompts from this machine's disk: `.punie/commands/NAME.md`."""

from __future__ import annotations

import os
from pathlib import Path

import anyio.to_thread
from attrs import frozen

from punie.adapters.local.files.folders import names_in, open_file, opened_folder, read_at_most
from punie.domain.session.commands import PromptFile, prompt_file
from punie.ports.workspace import PromptFiles

FOLDER = (".punie", "commands")
ENDING = ".md"
FILES_LIMIT = 100
NAMES_LIMIT = 1_000
MAX_BYTES = 32_768


@frozen
class LocalPromptFiles(PromptFiles):
    """Reads the files of the session's directory itself: no folder below it, and no link anywhere on the way."""

    cwd: str

    async def read(self) -> tuple[PromptFile, ...]:
        return await anyio.to_thread.run_sync(_read, self.cwd)


def _read(cwd: str) -> tuple[PromptFile, ...]:
    folder = str(Path(os.path.realpath(cwd)).joinpath(*FOLDER))
    found: list[PromptFile] = []
    try:
        with opened_folder(folder) as opened:
            names = sorted(name for name in names_in(opened, NAMES_LIMIT) if name.endswith(ENDING))
            for name in names[:FILES_LIMIT]:
                one = _read_one(opened, name)
                if one is not None:
                    found.append(one)
    except (OSError, NotImplementedError):  # there is none, it is a link, or this system cannot tell links apart
        return ()
    return tuple(found)


def _read_one(folder: int, name: str) -> PromptFile | None:
    """One file's prompt; None for one that is no text, too long, or not to be read."""
    try:
        descriptor = open_file(folder, name)
    except OSError:
        return None
    try:
        content = read_at_most(descriptor, MAX_BYTES)
        if len(content) > MAX_BYTES:
            return None
        return prompt_file(name.removesuffix(ENDING), content.decode("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    finally:
        os.close(descriptor)
