"""The last lines of `punie ask`: the files that changed, the tokens, the cost, and what was denied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from punie.adapters.console.tally import Denial, allow_flags, short_title
from punie.application.sessions.changed_files import shown_name
from punie.domain.session.turn import Usage
from punie.domain.values.display import counted
from punie.domain.values.paths import shown_path
from punie.ports.history import ChangedFile

SHOWN_FILES = 10
SHOWN_DENIALS = 5
TITLE_CHARS = 60

_SIGNS = {"created": "A", "modified": "M", "deleted": "D"}


@frozen
class Ending:
    """The outcome of a turn: its own changes of files, its usage and its denials."""

    cwd: str
    changes: Sequence[ChangedFile]
    usage: Usage
    denials: Sequence[Denial]

    def text(self) -> str:
        """Lines for a person, safe to show; empty where nothing happened."""
        return "".join(f"{line}\n" for line in (*self._files(), *self._spent(), *self._denied()))

    def as_object(self) -> dict[str, object]:
        """The same for programs."""
        files = [
            {"path": row.path, "change": row.change, "added": row.added, "removed": row.removed}
            for row in by_file(self.changes)
        ]
        denied = [{"tool": one.tool, "reason": one.reason, "allow": list(one.allow)} for one in self.denials]
        return {"changes": files, "denied": denied}

    def _files(self) -> Iterator[str]:
        rows = by_file(self.changes)
        names = [short_title(shown_name(shown_path(row.path, self.cwd)), TITLE_CHARS) for row in rows[:SHOWN_FILES]]
        width = max(map(len, names), default=0)
        for name, row in zip(names, rows, strict=False):
            yield f"  {_SIGNS[row.change]} {name.ljust(width)} {_lines(row.added, row.removed)}".rstrip()
        if len(rows) > SHOWN_FILES:
            yield f"  ... and {len(rows) - SHOWN_FILES} more; `punie changes` lists all"
        if rows:
            total = [sum(getattr(row, side) or 0 for row in rows) for side in ("added", "removed")]
            yield f"{counted(len(rows), 'file')} changed,{_lines(*total)}; `punie undo` takes it back"

    def _spent(self) -> Iterator[str]:
        usage = self.usage
        if usage.requests or usage.input_tokens or usage.output_tokens:
            cost = "" if usage.cost_usd is None else f", ${usage.cost_usd:.4f}"
            cached = f" ({usage.cached_read_tokens:,} cached)" if usage.cached_read_tokens else ""
            yield f"{counted(usage.input_tokens, 'token')} in{cached}, {usage.output_tokens:,} out{cost}"

    def _denied(self) -> Iterator[str]:
        if not self.denials:
            return
        titles = [*dict.fromkeys(short_title(one.title, TITLE_CHARS) for one in self.denials)]
        more = f" and {len(titles) - SHOWN_DENIALS} more" if len(titles) > SHOWN_DENIALS else ""
        rules = tuple(dict.fromkeys(rule for one in self.denials[:SHOWN_DENIALS] for rule in one.allow))
        yield f"denied: {', '.join(titles[:SHOWN_DENIALS])}{more}"
        if rules:
            yield f"  to allow it in the next run: {allow_flags(rules)}"


def by_file(changes: Sequence[ChangedFile]) -> list[ChangedFile]:
    """One row for each file that a tool or a command changed, with the lines of all its changes together."""
    rows: dict[str, ChangedFile] = {}
    for one in changes:
        if one.by == "person":
            continue
        first = rows.get(one.path)
        rows[one.path] = one if first is None else _together(first, one)
    return [row for row in rows.values() if row.was != row.left]


def _together(first: ChangedFile, then: ChangedFile) -> ChangedFile:
    return evolve(first, left=then.left, added=_sum(first.added, then.added), removed=_sum(first.removed, then.removed))


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _lines(added: int | None, removed: int | None) -> str:
    return "" if added is None or removed is None else f" +{added} -{removed}"
