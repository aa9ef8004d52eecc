"""The changes of an open session, which a person looks over: listed, accepted and rejected; `/changes`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from punie.application.sessions.changed_files import accept, changed_files, rows_text, shown_name
from punie.application.tools.files.rejecting import REJECT, rejected
from punie.application.tools.files.restore_file import RestoreFile
from punie.application.turns.live_session import Answered, Invocation, LiveSession, Outcome
from punie.domain.errors import SessionStoreError, ToldToModel, ToolFailedError
from punie.domain.permission.audit import DecisionRecord
from punie.domain.permission.rules import AnsweredBy, Verdict
from punie.domain.values.display import display_safe, one_line
from punie.ports.history import ChangedFile, FileChange, FileHistory

REVIEW_HINT = "N | all | accept [PATH...] | reject PATH [HUNK...]"


async def changes(
    session: LiveSession, turn: int | None = None, *, everything: bool = False
) -> tuple[ChangedFile, ...]:
    """The files that the session's turns changed. Raises `SessionStoreError`."""
    return await changed_files(_history(session), await session.recorder.record.turns(), turn, everything=everything)


async def accept_changes(session: LiveSession, paths: Sequence[str]) -> tuple[str, ...]:
    """Note that a person looked at these files or, without any, at all; returns those that were changed."""
    return await accept(_history(session), [_absolute(session, path) for path in paths])


async def reject_changes(session: LiveSession, given: str, hunks: Sequence[int]) -> None:
    """Take the session's changes of a file back, or these hunks of them, through the client where it serves files.

    Raises `ToolFailedError` and `SessionStoreError`.
    """
    history, path = _history(session), _absolute(session, given)
    turns, tool = await session.recorder.record.turns(), session.desk.registry.get(RestoreFile.DESCRIPTOR.name)
    files = tool if isinstance(tool, RestoreFile) else None
    now = await (history.look(path) if files is None else files.now(path))
    version = await rejected(history, path, now, hunks)
    await (history.put(path, version) if files is None else files.write(path, version))
    await history.record(
        FileChange(turns[-1] if turns else "", path, now.key, version.key, "tool", REJECT), now, version
    )
    _note(session, path)


def _note(session: LiveSession, path: str) -> None:
    """Add the person's command to the audit trail."""
    permission = session.desk.permission
    permission.approvals.audit.record(
        DecisionRecord(
            at=session.clock.epoch_s(), session_id=session.id, call_id="", tool="changes reject", source="built-in",
            mode=session.mode.current.value, verdict=Verdict.ALLOW, rule="person", reason="the person's own command",
            answered_by=AnsweredBy.PERSON, arguments_digest="", definition="", title=f"Rejecting {one_line(path)}",
        )
    )  # fmt: skip


def _history(session: LiveSession) -> FileHistory:
    known = session.desk.permission.changes
    if known is None or known.disk is None:
        raise ToolFailedError("Former contents are not kept here: this machine's files are not to be read.")
    return known.history


def _absolute(session: LiveSession, path: str) -> str:
    return str(PurePosixPath(session.desk.context.cwd) / path)


async def look_over(invocation: Invocation) -> Outcome:
    """`/changes`: lists what the session changed, and accepts or rejects it."""
    session = invocation.session
    try:
        return Answered(await _answer(session, shlex.split(invocation.arguments)))
    except (ValueError, SessionStoreError, ToldToModel) as error:
        return Answered(f"```text\n{display_safe(str(error)).rstrip()}\n```")


async def _answer(session: LiveSession, words: Sequence[str]) -> str:
    match words:
        case ["accept", *paths]:
            seen = await accept_changes(session, paths)
            return f"{len(seen)} changed files are accepted. `/changes all` still lists them."
        case ["reject", path, *numbers]:
            await reject_changes(session, path, [_number(word) for word in numbers])
            return f"Taken back: `{shown_name(path).replace('`', chr(39))}`."
        case [] | ["all"] | [_]:
            turn = None if words in ([], ["all"]) else _number(words[0])
            rows = await changes(session, turn, everything=bool(words))
            return f"```text\n{rows_text(rows, session.desk.context.cwd)}```"
        case _:
            raise ValueError(f"/changes {REVIEW_HINT}")


def _number(word: str) -> int:
    if not word.isdecimal():
        raise ValueError(f"{one_line(word, 40)} is no number: /changes {REVIEW_HINT}")
    return int(word)
