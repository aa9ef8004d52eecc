"""`punie trace SESSION`: a stored session as one page for a browser."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import anyio

from punie import __version__
from punie.adapters.html.trace_page import MARK, TracePage
from punie.application.sessions.trace import SessionTrace
from punie.commands.running import Exit, wrong
from punie.commands.sessions.run import LAST, command_store, found_session, last_session
from punie.domain.errors import PunieError, SettingsError
from punie.domain.session.log import SessionSummary
from punie.domain.values.display import display_safe, one_line
from punie.mechanics.drafts import draft_of
from punie.ports.sessions import SessionStore

MARK_WITHIN = 200
"""The mark of a page is within its first bytes."""

NAME_CHARS = 100


class PageError(Exception):
    """The page cannot be written; the message says why and what to do."""


@contextmanager
def new_page(target: Path) -> Generator[Callable[[str], object]]:
    """A function that writes pieces of a page; the file takes its place at once, and only when the block succeeds.

    The file is readable by its owner only. Raises `PageError`.
    """
    try:
        with draft_of(target) as file:
            yield lambda text: file.write(text.encode("utf-8"))
    except OSError as error:
        raise _unwritable(target, error) from error


def _unwritable(target: Path, error: OSError) -> PageError:
    why = (error.strerror or "it cannot be written").lower()
    return PageError(f"{one_line(str(target), 300)} cannot be written: {why}. Name another with --output.")


def page_target(output: str | None, session_id: str, *, force: bool) -> Path:
    """The path of the page. Raises `PageError` where another file would be overwritten."""
    if output is None:
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", session_id)[:NAME_CHARS]
        output = f"punie-trace-{name}.html"
    target = Path(output).expanduser().resolve()
    shown = one_line(str(target), 300)
    if target.is_dir():
        raise PageError(f"{shown} is a directory. Name a file with --output.")
    if target.exists():
        if not target.is_file():
            raise PageError(f"{shown} is no file. Name one with --output.")
        if not force and not _is_page(target):
            raise PageError(f"{shown} is there already and is no trace. Name another one, or say --force.")
    return target


def _is_page(target: Path) -> bool:
    try:
        with target.open("rb") as stream:
            beginning = stream.read(MARK_WITHIN)
    except OSError as error:
        raise _unwritable(target, error) from error
    return not beginning or MARK.encode() in beginning


async def _write(store: SessionStore, summary: SessionSummary, target: Path) -> None:
    trace = SessionTrace(store, summary)
    outline = await trace.outline()
    page = TracePage(outline, __version__)
    with new_page(target) as write:
        write(page.head())
        async for turn in trace.turns(outline):
            write(page.turn(turn))
        write(page.foot())


async def _trace(store: SessionStore, given: str, output: str | None, *, force: bool, in_browser: bool) -> int:
    summary = await (last_session(store) if given == LAST else found_session(store, given))
    if summary is None:
        sys.stderr.write("Only sessions that were kept can be shown; `sessions.keep = false` keeps none.\n")
        return Exit.FAILED
    target = page_target(output, summary.id, force=force)
    await _write(store, summary, target)
    sys.stdout.write(f"{display_safe(str(target))}\n")
    if in_browser:
        import webbrowser

        webbrowser.open(target.as_uri())
    return 0


def run_trace(*, given: str, output: str | None = None, force: bool = False, in_browser: bool = False) -> int:
    """Write the page and print its path; returns the exit code."""
    try:
        store = command_store()
    except SettingsError as error:
        return wrong(str(error))
    try:
        return anyio.run(lambda: _trace(store, given, output, force=force, in_browser=in_browser))
    except PageError as error:
        sys.stderr.write(f"punie: {error}\n")
        return Exit.USAGE
    except PunieError as error:
        return wrong(str(error), Exit.FAILED)
    finally:
        store.close()
