"""The doctor's look at what Punie remembers: the state directory, its database, a shared store, and the log."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from punie.adapters.storage.inspection import inspect_database
from punie.bootstrap.credentials import Credentials, CredentialsError
from punie.bootstrap.session_store import session_store
from punie.bootstrap.settings.files import database_file, state_dir
from punie.bootstrap.settings.keys import SESSION_STORE
from punie.commands.doctor.examination import Case, Check
from punie.commands.setup.ide import find_entry
from punie.commands.setup.ides import IDES, this_installation
from punie.domain.errors import PunieError

LEAST_FREE_BYTES = 100 * 1_048_576
_MIB = 1_048_576
_OTHERS = 0o077


def directory(case: Case) -> Sequence[Check]:
    """Whether it can be written, is the user's alone, and has space."""
    path = state_dir(case.environ)
    problems = list(_folder_problems(path))
    if problems:
        return [Check("state", ok=False, detail=f"{path}: {problems[0][0]}", fix=problems[0][1])]
    if not path.exists():
        return [Check("state", ok=True, detail=f"{path} is not there yet; the first session makes it")]
    return [Check("state", ok=True, detail=f"{path}: writable, yours alone, {_free(path) // _MIB:,} MiB free")]


def _folder_problems(path: Path) -> Iterator[tuple[str, str]]:
    nearest = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    elsewhere = "or set PUNIE_STATE_DIR to another directory"
    if not nearest.is_dir():
        yield f"{nearest} is not a directory", f"Move it away, {elsewhere}."
        return
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        yield f"nothing can be written in {nearest} ({error.strerror})", f"Make it yours and writable, {elsewhere}."
    if _free(nearest) < LEAST_FREE_BYTES:
        yield f"only {_free(nearest) // _MIB} MiB are free there", f"Make room, {elsewhere}."
    if nearest == path and os.name == "posix" and path.stat().st_mode & _OTHERS:
        mode = path.stat().st_mode & 0o777
        yield f"others may look into it (mode {mode:03o}, expected 700)", f"chmod 700 {path}"


def _free(path: Path) -> int:
    return shutil.disk_usage(path).free


def database(case: Case) -> Sequence[Check]:
    """Whether the one file of the state is whole, and of a version that this Punie knows."""
    path = database_file(case.environ)
    if not path.exists():
        return [Check("database", ok=True, detail=f"{path} is not there yet; the first session makes it")]
    found = inspect_database(path)
    beside = f"Move {path} away (Punie begins a new one), or put back one from before."
    if found.problem is not None:
        return [Check("database", ok=False, detail=f"{path}: {found.problem}", fix=beside)]
    if found.version > found.known:
        detail = f"{path} was written by a newer Punie (schema {found.version}, this one knows {found.known})"
        return [Check("database", ok=False, detail=detail, fix=f"Update Punie, or: {beside}")]
    older = "" if found.version == found.known else f", brought up to {found.known} at its next use"
    if os.name == "posix" and path.stat().st_mode & _OTHERS:
        detail = f"{path} can be read by others (mode {path.stat().st_mode & 0o777:03o}, expected 600)"
        return [Check("database", ok=False, detail=detail, fix=f"chmod 600 {path}")]
    detail = f"whole, schema {found.version}{older}, {path.stat().st_size / _MIB:.1f} MiB"
    return [Check("database", ok=True, detail=detail)]


def credentials(case: Case) -> Sequence[Check]:
    """What `punie setup model` stored: whether it can be read, and by the user alone. No key is looked at."""
    stored = Credentials.of(case.environ)
    if not stored.path.exists():
        return [Check("credentials", ok=True, detail="none stored; keys come from the environment")]
    try:
        known = stored.read()
    except CredentialsError as error:
        fix = f"Remove {stored.path} and set the model up again: punie setup model"
        return [Check("credentials", ok=False, detail=str(error), fix=fix)]
    if os.name == "posix" and stored.path.stat().st_mode & _OTHERS:
        detail = f"{stored.path} can be read by others (mode {stored.path.stat().st_mode & 0o777:03o}, expected 600)"
        return [Check("credentials", ok=False, detail=detail, fix=f"chmod 600 {stored.path}")]
    names = [f"{name} ({'keyring' if one.in_keyring else 'file'})" for name, one in known.items()]
    return [Check("credentials", ok=True, detail=f"stored: {', '.join(names) or 'none'}")]


async def shared_sessions(case: Case) -> Sequence[Check]:
    """The PostgreSQL server that sessions are kept in, where the settings name one."""
    if case.traced is None or case.traced.settings[SESSION_STORE] is None:
        return []
    if case.offline:
        return [Check("sessions", ok=True, detail="kept on a PostgreSQL server, which was not asked (--offline)")]
    fix = "Check sessions.store (punie config explain sessions.store), the server, and the network between."
    if importlib.util.find_spec("psycopg") is None:
        detail = "sessions.store names a PostgreSQL server, and the library for it is not installed"
        return [Check("sessions", ok=False, detail=detail, fix="pip install 'punie[postgres]'")]
    try:
        store = session_store(case.environ, case.traced.settings, case.log)
        await store.sessions(None, None, 1)
    except PunieError as error:
        return [Check("sessions", ok=False, detail=str(error), fix=fix)]
    return [Check("sessions", ok=True, detail="the PostgreSQL server of sessions.store answers")]


def log(case: Case) -> Sequence[Check]:
    """Where log lines go, for the IDEs' entries too, and whether the level is one."""
    level = case.environ.get("PUNIE_LOG_LEVEL", "INFO")
    levels = sorted(logging.getLevelNamesMapping())
    if level.upper() not in levels:
        fix = f"Set PUNIE_LOG_LEVEL to one of {', '.join(levels)}, or unset it."
        return [Check("log", ok=False, detail=f"PUNIE_LOG_LEVEL={level} is no level; INFO is used", fix=fix)]
    files = list(_log_files(case))
    for path in files:
        folder = next(folder for folder in path.absolute().parents if folder.exists())
        if not os.access(folder, os.W_OK | os.X_OK) or path.is_dir():
            fix = "Make it writable, or name another file with --log-file in the IDE's entry."
            return [Check("log", ok=False, detail=f"the log file {path} cannot be written", fix=fix)]
    where = f"; in {', '.join(map(str, files))}" if files else ""
    return [Check("log", ok=True, detail=f"level {level.upper()}, on stderr, where the IDE shows it{where}")]


def _log_files(case: Case) -> Iterator[Path]:
    """Those that IDEs' entries name with --log-file."""
    for ide in IDES:
        words = find_entry(ide, case.environ, this_installation()).args
        for place, word in enumerate(words):
            if word == "--log-file" and place + 1 < len(words):
                yield Path(words[place + 1])
            elif word.startswith("--log-file="):
                yield Path(word.partition("=")[2])
