"""Files of a session taken back to before a turn: what that would do, and doing it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence

import anyio.lowlevel
from attrs import frozen

from punie.application.tools.files.session_changes import others_change
from punie.domain.values.display import display_exact
from punie.domain.values.paths import shown_path
from punie.mechanics.line_diff import line_counts
from punie.ports.history import ABSENT, FOLDER, OTHER, FileChange, FileHistory, FileVersion, Move

DIFF_LINES = 40
DIFF_CHARS = 200_000

NOT_TAKEN_BACK = (
    "What commands sent over the network, processes that they started, git's own state (commits, branches, the index "
    "and the stash) and files that git ignores are not taken back."
)


@frozen
class BackFile:
    """A file that goes back: where to, and its lines added and removed by that; None where it has none."""

    move: Move
    added: int | None = None
    removed: int | None = None


@frozen
class KeptFile:
    """A file that stays as it is, why, and what somebody else changed in it, as lines of a diff."""

    path: str
    reason: str
    difference: str = ""


@frozen
class RewindPlan:
    """The effect that taking back would have on the files."""

    back: tuple[BackFile, ...] = ()
    kept: tuple[KeptFile, ...] = ()

    @property
    def moves(self) -> tuple[Move, ...]:
        """The changes of files."""
        return tuple(one.move for one in self.back)


async def planned(history: FileHistory, turns: Collection[str], named: Collection[str] = ()) -> RewindPlan:
    """The plan that brings every file back to before the first change by one of these turns.

    A file that somebody else changed since stays, unless its absolute path is `named`.
    """
    made: dict[str, list[FileChange]] = {}
    for change in await history.changes():
        if change.path in made or (change.turn in turns and change.by != "person"):
            made.setdefault(change.path, []).append(change)
    back, kept = list[BackFile](), list[KeptFile]()
    for path, changes in sorted(made.items()):
        now = await history.look(path)
        to = await history.version(changes[0].was)
        theirs = None if path in named else others_change(changes, now.key)
        if now.key == changes[0].was:
            continue
        if theirs is not None:
            kept.append(KeptFile(path, "somebody else changed it since", await _difference(history, path, theirs, now)))
        elif to is None or now.key == OTHER:
            kept.append(KeptFile(path, "what it held before was not kept: it is too large, or no file"))
        else:
            back.append(_counted(Move(path, now.key, changes[0].was), now, to))
    return RewindPlan(tuple(back), tuple(kept))


async def carry_out(history: FileHistory, plan: RewindPlan, turn: str) -> tuple[str, ...]:
    """Take the files back as one change of that turn; returns their paths, without folders.

    Raises `ToolFailedError` where nothing was done.
    """
    await history.take_back(turn, plan.moves, anyio.lowlevel.checkpoint)
    return tuple(move.path for move in plan.moves if FOLDER not in {move.now, move.to})


async def committed_already(_turn: str) -> bool:
    """Whether a change of files that has a note is to be completed: its note is written once all is ready."""
    await anyio.lowlevel.checkpoint()
    return True


def plan_text(plan: RewindPlan, turn: int, cwd: str) -> str:
    """The plan for a person, safe to show."""
    if not plan.back and not plan.kept:
        return f"As far as it is known, nothing was changed since before turn {turn}, so nothing is to be taken back."
    lines = [f"Back to before turn {turn}:"] if plan.back else ["Nothing can be taken back."]
    for one in plan.back:
        if FOLDER in {one.move.now, one.move.to}:
            continue
        sign = "D" if one.move.to == ABSENT else "A" if one.move.now == ABSENT else "M"
        counts = "" if one.added is None else f"  +{one.added} -{one.removed}"
        lines.append(f"  {sign} {_name(one.move.path, cwd)}{counts}")
    for one in plan.kept:
        lines.append(f"  kept: {_name(one.path, cwd)}: {one.reason}; name it to take it back all the same")
        lines += [f"    {display_exact(line)}" for line in one.difference.splitlines()]
    return "\n".join(lines)


def _name(path: str, cwd: str) -> str:
    """A path on one line; every character that a person would not see as itself is written out."""
    return display_exact(shown_path(path, cwd)).replace("\n", "<U+000A>").replace("\t", "<U+0009>")


def plan_object(plan: RewindPlan, turn: int, restored: Sequence[str] | None = None) -> Mapping[str, object]:
    """The plan as programs read it; without `restored`, with what would be restored."""
    files = [one.move.path for one in plan.back if FOLDER not in {one.move.now, one.move.to}]
    return {
        "restored": list(files if restored is None else restored),
        "kept": [{"path": one.path, "reason": one.reason} for one in plan.kept],
        "turn": turn,
    }


async def _difference(history: FileHistory, path: str, keys: tuple[str, str], now: FileVersion) -> str:
    left, then = await history.version(keys[0]), await history.version(keys[1]) or now
    old, new = "" if left is None or left.key == ABSENT else left.text, "" if then.key == ABSENT else then.text
    if old is None or new is None or len(old) + len(new) > DIFF_CHARS:
        return ""
    lines = list(
        difflib.unified_diff(old.splitlines(), new.splitlines(), "left by the session", "changed since", lineterm="")
    )
    return "\n".join([*lines[:DIFF_LINES], *(["[...]"] if len(lines) > DIFF_LINES else [])])


def _counted(move: Move, now: FileVersion, to: FileVersion) -> BackFile:
    old, new = "" if now.key == ABSENT else now.text, "" if to.key == ABSENT else to.text
    if old is None or new is None or FOLDER in {move.now, move.to} or len(old) + len(new) > DIFF_CHARS * 10:
        return BackFile(move)
    return BackFile(move, *line_counts(old, new))
