"""Files that a person mentions in a prompt typed on this machine, as `@PATH`: attached to the prompt, as an IDE does.

A mention is read by the session's own `read_file` and `list_files`, so that rules, questions, hooks and the audit trail
are those of any call. Only what the person typed is looked at: a pasted text or a piped one mentions nothing.
"""

from __future__ import annotations

import base64
import difflib
import os
import re
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import anyio.to_thread
from attrs import define, evolve, field, frozen

from punie.application.desk.session_desk import SessionDesk
from punie.application.desk.turn_desk import TurnDesk
from punie.application.tools.files.list_files import ListFiles
from punie.application.turns.live_session import LiveSession
from punie.domain.errors import ToldToModel
from punie.domain.model.provider import DIRECT
from punie.domain.session.events import SessionEvent
from punie.domain.session.prompt_files import typed_in
from punie.domain.tools.tool import ToolCall, ToolOutcome, ToolResult
from punie.domain.values.content import Block, EmbeddedResource, Image, Prompt
from punie.domain.values.display import counted, one_line
from punie.domain.values.file_kind import PICTURE_LIMIT_BYTES, looks_binary, picture_type
from punie.domain.values.paths import shown_path
from punie.mechanics.files import read_path
from punie.ports.engine import EventSink

FILE_LIMIT_CHARS: Final = 64_000
PROMPT_LIMIT_CHARS: Final = 256_000
"""Characters of all files of one prompt."""

MENTION_LIMIT: Final = 20
LISTED_LIMIT: Final = 400
"""Entries of a mentioned folder."""

COMPLETED_LIMIT: Final = 5_000
"""Files of a project that completion knows."""

NOTE_CHARS: Final = 200

# An `@` behind a letter, digit or sign is an address's or a part of code; one behind a backslash is meant as it is.
_MENTION: Final = re.compile(r'(?<![\w@.+/\\\-`])@(?:"([^"\n]{1,1024})"|([^\s"@`][^\s"`]{0,1023}))')
_LINE: Final = re.compile(r"(.+?)(?::\d+(?:-\d+)?){1,2}\Z")
_CLOSING: Final = ".,;:!?)]}>'"
_LIKE_A_FILE: Final = re.compile(r".*(?:/|\.[A-Za-z0-9]{1,4}\Z|\.(?:patch|ipynb|proto|scala|swift)\Z)")
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


@frozen
class Mentioned:
    """A prompt with its attachments. `notes` say in a line each what was attached, and what was not and why."""

    prompt: Prompt
    notes: tuple[str, ...] = ()


async def mentioned(
    session: LiveSession, typed: str, whole: str | None = None, pictures: Iterable[Image] = ()
) -> Mentioned:
    """The prompt of a typed text with the files that it mentions, and with the pictures that were pasted.

    `whole` is sent as its text where that is more than was typed, with what was pasted or piped. A command, and a
    session without a model, get the text alone. Nothing is raised for a mention: a note says what became of it.
    """
    prompt = Prompt.of_text(typed if whole is None else whole)
    if session.model == DIRECT or _is_command(session, prompt):
        return Mentioned(prompt)
    reading = _Reading(session)
    for picture in pictures:
        reading.attach_picture("the picture", picture)
    found = await anyio.to_thread.run_sync(_found, typed, session.desk.context.cwd)
    for mention in found[:MENTION_LIMIT]:
        await reading.take(mention)
    if len(found) > MENTION_LIMIT:
        reading.notes.append(f"only the first {MENTION_LIMIT} mentioned files are attached")
    return Mentioned(evolve(prompt, blocks=(*prompt.blocks, *reading.blocks)), tuple(reading.notes))


async def project_files(session: LiveSession, limit: int = COMPLETED_LIMIT) -> tuple[str, ...]:
    """The files and folders of the session's directory, relative, as completion offers them.

    Left out are those that git ignores, and names with characters that a terminal obeys. Empty where the session does
    not list files.
    """
    tool = session.desk.registry.get(ListFiles.DESCRIPTOR.name)
    cwd = session.desk.context.cwd
    if not isinstance(tool, ListFiles):
        return ()
    try:
        listing = await tool.tree.list_files(cwd, recursive=True, limit=limit)
    except ToldToModel:
        return ()
    names = (_relative(path, cwd) for path in listing.paths)
    return tuple(name for name in names if not _CONTROLS.search(name) and '"' not in name)


def as_mention(name: str) -> str:
    """The mention of a file, in quotation marks where its name needs them."""
    return f'@"{name}"' if re.search(r"\s", name) or name[-1:] in _CLOSING else f"@{name}"


@frozen
class _Mention:
    """One mention: the name as written, and the path, None where there is no such file, and whether it is a folder."""

    name: str
    path: str | None = None
    folder: bool = False


class _Unheard(EventSink):
    """Hears of calls that are no part of a turn."""

    async def emit(self, event: SessionEvent) -> None:
        """Do nothing: the prompt has the file, and the audit trail the decision."""


@define
class _Reading:
    """The reading of one prompt's files."""

    session: LiveSession
    blocks: list[Block] = field(factory=list[Block], init=False)
    notes: list[str] = field(factory=list[str], init=False)
    _left_chars: int = field(default=PROMPT_LIMIT_CHARS, init=False)
    _files: tuple[str, ...] | None = field(default=None, init=False)

    @property
    def _desk(self) -> SessionDesk:
        return self.session.desk

    async def take(self, mention: _Mention) -> None:
        """Attach a file or a folder, or note why not."""
        if mention.path is None:
            await self._miss(mention.name)
        elif _CONTROLS.search(mention.path):
            self._note(mention.name, "not attached: its name has control characters")
        elif mention.folder:
            await self._attach_folder(mention)
        else:
            await self._attach_file(mention)

    def attach_picture(self, name: str, picture: Image) -> None:
        """Attach a picture, or note why not."""
        if self.session.model.startswith("script:"):
            self._say(name, "not attached: this model takes no pictures")
        else:
            self.blocks.append(picture)
            self._say(name, f"attached, {picture.mime_type}, {len(picture.data) * 3 // 4000 + 1} kB")

    def _note(self, name: str, said: str) -> None:
        self._say(f"@{name}", said)

    def _say(self, name: str, said: str) -> None:
        self.notes.append(f"{one_line(name, NOTE_CHARS + 1)}: {one_line(said, NOTE_CHARS)}")

    async def _miss(self, name: str) -> None:
        if self._files is None:
            self._files = await project_files(self.session)
        by_name = {file.rstrip("/").rpartition("/")[2].lower(): file for file in reversed(self._files)}
        folded = {file.rstrip("/").lower(): file for file in self._files}
        near = difflib.get_close_matches(name.lower(), folded, 1, 0.8)
        near = [folded[one] for one in near] or [
            by_name[one] for one in difflib.get_close_matches(name.rpartition("/")[2].lower(), by_name, 1, 0.8)
        ]
        if near:
            self._note(name, f"there is no such file; did you mean {as_mention(near[0])}?")
        elif _LIKE_A_FILE.match(name):
            self._note(name, "there is no such file, so nothing is attached")

    async def _attach_folder(self, mention: _Mention) -> None:
        result = await self._call(ListFiles.DESCRIPTOR.name, mention)
        if not result.succeeded:
            self._note(mention.name, f"not attached: {result.text}")
            return
        names = result.text.split("\n")
        more = [f"[{len(names) - LISTED_LIMIT} more]"] if len(names) > LISTED_LIMIT else []
        self._attach_text(mention, "\n".join([*names[:LISTED_LIMIT], *more]), counted(len(names), "name"))

    async def _attach_file(self, mention: _Mention) -> None:
        result = await self._call("read_file", mention)
        if isinstance(result.structured, str):
            self._attach_text(mention, result.structured)
        elif result.outcome is ToolOutcome.FAILED and (data := await self._bytes(mention)) is not None:
            self._attach_bytes(mention, data, result.text)
        else:
            self._note(mention.name, f"not attached: {result.text}")

    async def _call(self, tool: str, mention: _Mention) -> ToolResult:
        quiet = evolve(self._desk, context=evolve(self._desk.context, events=_Unheard()))
        desk = TurnDesk(quiet, uuid.uuid4().hex)
        try:
            return await desk.call(ToolCall("mention", tool, {"path": mention.path}))
        finally:
            await desk.close()

    async def _bytes(self, mention: _Mention) -> bytes | None:
        """The bytes of a file of the project that `read_file` was allowed to read and could not; else None."""
        where = await self._desk.context.guard.locate(mention.path or "")
        return await anyio.to_thread.run_sync(read_path, where.path, PICTURE_LIMIT_BYTES) if where.inside else None

    def _attach_bytes(self, mention: _Mention, data: bytes, why_not: str) -> None:
        kind = picture_type(data)
        text = None if kind else _decoded(data)
        if text is not None:
            self._attach_text(mention, text, "not in UTF-8, so some characters may be wrong")
        elif kind is None:
            self._note(mention.name, f"not attached: {why_not}")
        elif len(data) > PICTURE_LIMIT_BYTES:
            self._note(mention.name, f"not attached: a picture may have {PICTURE_LIMIT_BYTES // 1_000_000} MB")
        else:
            self.attach_picture(f"@{mention.name}", Image(base64.b64encode(data).decode(), kind, _uri(mention)))

    def _attach_text(self, mention: _Mention, text: str, about: str = "") -> None:
        limit = min(FILE_LIMIT_CHARS, self._left_chars)
        shown = text if len(text) <= limit else text[:limit].rpartition("\n")[0] or text[:limit]
        self._left_chars -= len(shown)
        lines, of = _lines(shown), _lines(text)
        said = counted(of, "line") if shown == text else f"the first {lines} of {of} lines"
        if shown != text:
            shown = f"{shown}\n[these are {said}; read_file reads the rest]"
        self.blocks.append(EmbeddedResource(_uri(mention), shown))
        self._note(mention.name, f"attached, {about or said}")


def _is_command(session: LiveSession, prompt: Prompt) -> bool:
    typed = typed_in(prompt)
    known = (*session.engine.commands, *(command.info for command in session.commands.own))
    return typed is not None and any(typed.name == info.name for info in known)


def _found(typed: str, cwd: str) -> list[_Mention]:
    """The mentions of a text, each file once."""
    found: dict[str, _Mention] = {}
    for quoted, bare in _MENTION.findall(typed):
        if quoted:
            mention = _mention(quoted, cwd)
        elif re.search(r"\w", bare) is None:
            continue
        else:
            there = (one for form in _forms(bare) if (one := _mention(form, cwd)).path is not None)
            mention = next(there, _Mention(bare.rstrip(_CLOSING)))
        found.setdefault(mention.path or mention.name, mention)
    return list(found.values())


def _forms(written: str) -> Iterator[str]:
    """The names that a word may have: all of it, and without the end that a sentence or an error message puts there."""
    while written:
        yield written
        if line := _LINE.match(written):
            yield line[1]
        if written[-1] not in _CLOSING:
            return
        written = written[:-1]


def _mention(name: str, cwd: str) -> _Mention:
    try:
        path = Path(cwd, Path(name).expanduser())
        return _Mention(name, str(path), path.is_dir()) if path.exists() else _Mention(name)
    except (OSError, RuntimeError, ValueError):  # no such home, or a name that no file can have
        return _Mention(name)


def _uri(mention: _Mention) -> str:
    return Path(os.path.normpath(mention.path or "")).as_uri()


def _relative(path: str, cwd: str) -> str:
    return shown_path(path.rstrip("/"), cwd) + ("/" if path.endswith("/") else "")


def _decoded(data: bytes) -> str | None:
    """A text in another encoding than UTF-8; None where the bytes are none."""
    encoding = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "cp1252")
    text = data.decode(encoding, "replace")
    return None if len(data) > PICTURE_LIMIT_BYTES or looks_binary(text) else text


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))
