"""`punie undo`: shows what would be taken back, asks, and takes it back."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from punie.adapters.git.repository import DulwichRepository
from punie.adapters.local.files.file_history import LocalFileHistory, history_folder
from punie.adapters.local.files.output_store import temporary_folder
from punie.adapters.local.files.private_folder import remove_abandoned
from punie.adapters.local.machine import LocalClock
from punie.application.sessions.going_back import committed_in, session_plan, take_session_back
from punie.application.sessions.kept_record import KeptRecord
from punie.application.sessions.rewinding import RewindPlan, done_text, kept_lines, plan_text
from punie.application.sessions.stored import StoredSessions
from punie.application.tools.files.tree_watch import TreeWatch
from punie.application.turns.review import by_person
from punie.bootstrap.settings.files import state_dir
from punie.commands.changes.run import audit_trail, chosen_session
from punie.commands.running import Exit, command_environ, confirm, directory_of, start_logging, wrong
from punie.commands.sessions.run import command_store
from punie.domain.errors import ToolFailedError
from punie.domain.session.log import SessionSummary
from punie.ports.history import Part
from punie.ports.sessions import SessionStore


async def _undo(
    store: SessionStore,
    given: str | None,
    turn: int | None,
    part: Part,
    paths: Sequence[str],
    cwd: str,
    *,
    yes: bool,
    as_json: bool,
) -> int:
    session = await chosen_session(store, given, cwd)
    if session is None:
        return Exit.FAILED
    log = start_logging(command_environ(), None)
    # Refuses, with the holder, where another process has the session open.
    kept = await StoredSessions(store, LocalClock(), log).take_up(session.id, owner=session.owner)
    try:
        record = KeptRecord(kept, LocalClock(), log)
        return await _taken_back(store, session, record, turn, part, paths, yes=yes, as_json=as_json)
    finally:
        await kept.let_go()


async def _taken_back(
    store: SessionStore,
    session: SessionSummary,
    record: KeptRecord,
    turn: int | None,
    part: Part,
    paths: Sequence[str],
    *,
    yes: bool,
    as_json: bool,
) -> int:
    history = LocalFileHistory(history_folder(str(state_dir(command_environ())), session.id))
    await anyio.to_thread.run_sync(lambda: remove_abandoned(temporary_folder()))
    await history.recover(committed_in(store, session.id))
    roots = (session.cwd, *session.additional_directories)
    await TreeWatch(history, DulwichRepository(session.cwd, roots)).settle()
    try:
        plan = await session_plan(history, record, turn, part, _named(paths, session.cwd))
    except ToolFailedError as error:
        return wrong(str(error))
    if plan.is_empty:
        return _told(plan, session.cwd, as_json=as_json)
    confirm(f"{plan_text(plan, session.cwd)}\n", "Take this back?", yes=yes, as_json=as_json, to="take it back")
    done, trail = await take_session_back(history, record, plan), audit_trail()
    try:
        trail.record(by_person(time.time(), session.id, "undo", f"Going back to before turn {plan.turn}"))
    finally:
        await trail.aclose()
    return _told(done, session.cwd, as_json=as_json)


def _named(paths: Sequence[str], cwd: str) -> list[str]:
    """The absolute paths, without following a link at the end."""
    return [str(Path(os.path.realpath(Path(cwd, path).parent), Path(path).name)) for path in paths]


def _told(plan: RewindPlan, cwd: str, *, as_json: bool) -> int:
    """Print the end; returns the exit code, which is not 0 where a file stays as it is."""
    if as_json:
        sys.stdout.write(json.dumps(plan.outcome.as_object()) + "\n")
    elif plan.is_empty:
        sys.stdout.write(plan_text(plan, cwd) + "\n")
    else:
        kept = "".join(f"  {line}\n" for line in kept_lines(plan, cwd))
        sys.stdout.write(f"{done_text(plan)}\n{kept}")
    return Exit.FAILED if plan.kept else Exit.DONE


def run_undo(
    *, given: str | None, turn: int | None, part: str, paths: Sequence[str], yes: bool, as_json: bool, cwd: str
) -> int:
    """Take back what the turns of a session changed and said; returns the exit code."""
    directory_of(cwd)
    store = command_store()
    try:
        return anyio.run(lambda: _undo(store, given, turn, Part(part), paths, cwd, yes=yes, as_json=as_json))
    finally:
        store.close()
