"""Commits that were made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from dulwich.objects import Commit as GitCommit

from punie.adapters.git.checkout import Checkout
from punie.ports.workspace import Commit

LOG_LIMIT = 1_000


def read_log(checkout: Checkout, limit: int) -> tuple[Commit, ...]:
    """The newest commits that HEAD leads to."""
    head = checkout.head()
    wanted = min(limit, LOG_LIMIT)
    if head is None or wanted < 1:
        return ()
    walker = checkout.repo.get_walker(include=[head], max_entries=wanted)
    return tuple(shown_commit(entry.commit) for entry in walker)


def shown_commit(commit: GitCommit) -> Commit:
    """A commit in the port's words; bytes that do not decode show as U+FFFD."""
    return Commit(
        id=commit.id.decode("ascii"),
        author=_text(commit.author, commit.encoding),
        time=_time(commit.author_time, commit.author_timezone),
        message=_text(commit.message, commit.encoding),
    )


def _text(data: bytes, encoding: bytes | None) -> str:
    try:
        return data.decode((encoding or b"utf-8").decode("ascii", "replace"), "replace")
    except LookupError:  # an unknown encoding
        return data.decode("utf-8", "replace")


def _time(seconds: float, offset_s: int) -> str:
    try:
        zone = timezone(timedelta(seconds=offset_s))
        return datetime.fromtimestamp(seconds, zone).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):  # a commit may claim any number
        return datetime.fromtimestamp(0, UTC).isoformat(timespec="seconds")
