"""The changes that a session makes to files: kept around every call, so that they can be taken back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import islice
from math import inf
from typing import NoReturn

import anyio
from attrs import define, evolve, field

from punie.application.tools.files.file_memory import FileMemory, require_unchanged
from punie.application.tools.session_tool import CallContext, PreparedCall
from punie.domain.errors import ToldToModel, ToolFailedError
from punie.domain.permission.path_findings import changes as changes_path
from punie.domain.permission.path_findings import own_file_name
from punie.domain.permission.policy import only_looks
from punie.domain.tools.tool import ToolDescriptor, ToolKind
from punie.domain.values.content import Diff
from punie.domain.values.json_value import JsonObject
from punie.domain.values.paths import is_inside
from punie.ports.history import ABSENT, OTHER, FileChange, FileHistory, FileVersion
from punie.ports.repository import Repository, WorkTree
from punie.ports.workspace import Disk, PathGuard
from shellsight.report import CommandPart, CommandReport, PathEffect, PathUse, Proviso, Standing
from shellsight.secret_names import is_secret

BEGIN_LIMIT_S = 3.0
"""How long the state of a large working tree may take; without it, more is asked."""

WATCHED_LIMIT, WATCHED_BYTES = 200, 1_000_000
"""How many files of each kind are compared around a command that does not name them, and how large each may be."""

CLOCK_STEP_S = 0.02
"""The clock of files is that much behind at most."""

TRACKED_LIMIT = 20_000
"""Files of a repository whose times are looked at before each command (60 ms); in a larger one more is asked."""

GIT_MODE = 0o170_100
"""Of a file's mode, what git keeps: its kind, and whether it is a program."""

_PLAIN_NAMES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./@+,:=-")


@define(eq=False)
class SessionChanges:
    """The changes of a session, with the content that was there before; lives as long as the session.

    `memory` is what the session saw of its files. `disk` is None where this machine's is not to be read: then nothing
    is kept, and nothing can be taken back.
    """

    history: FileHistory
    repository: Repository
    guard: PathGuard
    memory: FileMemory = field(factory=FileMemory)
    disk: Disk | None = None
    _begun: WorkTree | None = field(default=None, init=False)
    _begun_s: float = field(default=inf, init=False)
    _ran: list[tuple[float, float]] = field(factory=list[tuple[float, float]], init=False)
    _others: set[str] = field(factory=set[str], init=False)

    # ------------------------------------------------------------ keeping

    @asynccontextmanager
    async def kept(
        self, tool: ToolDescriptor, arguments: JsonObject, context: CallContext, prepared: PreparedCall,
        report: CommandReport | None,
    ) -> AsyncGenerator[None]:  # fmt: skip
        """A block around a call's effect: what its files held before and after it is kept.

        Changes by a command or check count as seen, too. What somebody else changes meanwhile cannot be told from them.
        """
        if self.disk is None or only_looks(tool) or (report is not None and report.standing is Standing.SAFE):
            yield
            return
        runs = report is not None or (tool.kind is ToolKind.EXECUTE and prepared.composed is None)
        before = await self._before(_named(tool, arguments, context, report), prepared.diffs, runs=runs)
        began_s, written = anyio.current_time(), dict[str, str]()
        try:
            yield
            written = {diff.path: diff.new_text for diff in prepared.diffs}
        finally:
            with anyio.CancelScope(shield=True):
                for path, was in before.items():
                    change = FileChange(context.turn_id, path, was.key, "", "command" if runs else "tool", tool.name)
                    left = await self._keep(change, was, written.get(path))
                    if runs:
                        self.memory.renew(path, was.text, left.text)
            if runs:
                self._ran.append((began_s - CLOCK_STEP_S, anyio.current_time()))

    async def _before(self, named: Iterable[str], diffs: Iterable[Diff], *, runs: bool) -> dict[str, FileVersion]:
        await self.begun()
        before = {path: await self.history.look(path) for path in named}
        for diff in diffs:
            before[diff.path] = (await self.history.look(diff.path)).shown_as(diff.old_text)
        for path in await self._watched() if runs else ():
            if path not in before and (was := await self.history.look(path, WATCHED_BYTES)).key != OTHER:
                before[path] = was
        for path, was in before.items():
            await self._adopt(path, was)
        return before

    async def _watched(self) -> set[str]:
        """Files that a command may change unnamed: those that the session changed or saw last, and others' work."""
        changed, tree = dict.fromkeys(change.path for change in reversed(await self.history.changes())), self._begun
        if tree is not None and len(tree.tracked) <= TRACKED_LIMIT:
            times = await self._times(*tree.tracked)
            self._others.update(path for path, at_s in times.items() if at_s > self._begun_s and not self._is_own(at_s))
        others = sorted(self._others if tree is None else self._others | tree.changed)
        return {*islice(changed, WATCHED_LIMIT), *self.memory.latest(WATCHED_LIMIT), *others[:WATCHED_LIMIT]}

    async def _times(self, *paths: str) -> Mapping[str, float]:
        return {} if self.disk is None else await self.disk.changed_at_s(paths)

    def _is_own(self, at_s: float | None) -> bool:
        """Whether a command of the session ran at that time."""
        return at_s is not None and any(start <= at_s <= end for start, end in self._ran)

    async def _adopt(self, path: str, now: FileVersion) -> None:
        """Record what commands of the session that did not name the file made of the committed version."""
        begun = await self.begun()
        if begun is None or path in begun.changed | self._others or path not in begun.tracked:
            return
        known = any(change.path == path for change in await self.history.changes())
        if known or len(begun.tracked) > TRACKED_LIMIT or not self._is_own((await self._times(path)).get(path)):
            return
        was = await self.repository.committed(path, begun.head)
        if not (was.mode ^ now.mode) & GIT_MODE:
            was = evolve(was, mode=now.mode)
        if was.key != now.key:
            await self.history.record(FileChange("", path, was.key, now.key, "command"), was, now)

    async def _keep(self, change: FileChange, was: FileVersion, written: str | None) -> FileVersion:
        left = await self.history.look(change.path)
        if written or left.key != ABSENT:  # a client may write to its disk later
            left = left.shown_as(written)
        if left.key != was.key:
            await self.history.record(evolve(change, left=left.key), was, left)
        return left

    async def begun(self) -> WorkTree | None:
        """The working tree as it was before the session's first change; None where that is not known."""
        if self._begun_s == inf:
            self._begun_s = anyio.current_time()
            with anyio.move_on_after(BEGIN_LIMIT_S), suppress(ToldToModel):
                self._begun = await self.repository.work_tree()
        return self._begun

    # ------------------------------------------------------------ taking back

    async def former(self, path: str, to: str, now: FileVersion) -> FileVersion:
        """The version to bring a file back to. `to` is "session_start", "last_turn" or "head"; `now` is what it holds.

        Raises `ToldToModel` as `own`, and where the version was not kept.
        """
        made = await self.own(path, now, last_turn=to == "last_turn")
        if to == "head":
            return await self.repository.committed(path)
        version = await self.history.version(made[0].was)
        if version is None:
            raise ToolFailedError(f"What {path} held before was not kept: too large, a folder or a device.")
        return version

    async def own(self, path: str, now: FileVersion, *, last_turn: bool = False) -> list[FileChange]:
        """The session's changes of a file that holds `now`, the oldest first: all, or those of the last turn.

        Raises `ToldToModel` where there are none, or somebody else changed the file since the first of these changes.
        """
        await self._adopt(path, now)
        made = [change for change in await self.history.changes() if change.path == path]
        if not made:
            raise ToolFailedError(
                f"As far as it is known, this session did not change {path}, so nothing was restored. "
                "Changes of others are theirs; edit_file changes single places."
            )
        made = [change for change in made if not last_turn or change.turn == made[-1].turn]
        for change, key in zip(made, [*(after.was for after in made[1:]), now.key], strict=False):
            if change.left != key or key == OTHER:
                refuse(path, await self.history.version(change.left), await self.history.version(key) or now)
        return made

    # ------------------------------------------------------------ facts for the policy

    async def settled(self, report: CommandReport) -> CommandReport:
        """The report, with each part ordinary whose proviso holds, and its paths those that it would touch."""
        if self.disk is None or all(part.proviso is None for part in report.parts):
            return report
        try:
            return evolve(report, parts=tuple([await self._settled(part) for part in report.parts]))
        except ToldToModel:
            return report

    async def _settled(self, part: CommandPart) -> CommandPart:
        if part.proviso is None or not all(use.inside for use in part.paths):
            return part
        changed, paths = [use for use in part.paths if changes_path(use)], part.paths
        if part.proviso is Proviso.EXPENDABLE:
            if not all([await self._expendable(_deleted(use)) for use in changed]):
                return part
        else:
            places = tuple(use.place for use in changed)
            tracked = part.proviso is Proviso.TRACKED
            names = await (self._tracked(places) if tracked else self._back(part, places))
            if names is None:
                return part
            uses = [PathUse(path, PathEffect.WRITE, where=await self.guard.locate(path)) for path in names]
            paths = (*(use for use in part.paths if use not in changed), *uses)
        return evolve(part, standing=Standing.ORDINARY, proviso=None, paths=paths)

    async def _expendable(self, path: str) -> bool:
        """Whether each file there is as the session made it, or git ignores it."""
        changes = await self.history.changes()
        first, last = {change.path: change.was for change in reversed(changes)}, {one.path: one.left for one in changes}
        folders = tuple(path for path, was in first.items() if (was, last[path]) == (ABSENT, OTHER))

        async def made(file: str) -> bool:
            if file in first:
                return first[file] == ABSENT and last[file] == (await self.history.look(file)).key != OTHER
            return is_inside(file, folders) and self._is_own((await self._times(file)).get(file))

        if path in first and await made(path):
            return True
        files = await self.repository.untracked(path)
        for file, ignored in (files or {}).items():
            if not (ignored or await made(file)) or is_secret(file) or own_file_name(file):
                return False
        return files is not None

    async def _tracked(self, folders: tuple[str, ...]) -> list[str] | None:
        """Of the files that git tracks there, those that a decision looks at by name; None for a name with blanks."""
        files = await self.repository.tracked(folders)
        if any(not _PLAIN_NAMES.issuperset(path) or "/-" in path for path in files):
            return None
        return [path for path, linked in files.items() if linked or is_secret(path) or own_file_name(path)]

    async def _back(self, part: CommandPart, places: tuple[str, ...]) -> list[str] | None:
        """The files that git would change back; None where that could lose somebody else's work."""
        begun, now = await self.begun(), await self.repository.work_tree(tuple(use.place for use in part.paths))
        if begun is None or begun.top != now.top or not (places or begun.whole):
            return None
        if part.proviso is Proviso.STASHED:
            return None if begun.stashed or not begun.whole else []
        places = places or (begun.top,)
        back = sorted(path for path in now.changed if is_inside(path, places))
        if any(is_inside(path, places) for path in begun.changed) or len(back) > WATCHED_LIMIT:
            return None
        for path in back:
            found = await self.history.look(path)
            if found.key == ABSENT:
                continue
            first, was = (await self.own(path, found))[0].was, await self.repository.committed(path, begun.head)
            if first.partition(" ")[2] != was.key.partition(" ")[2]:
                return None
        return back


def refuse(path: str, left: FileVersion | None, then: FileVersion | None) -> NoReturn:
    """Raise the refusal of a file that the session `left` so, and that held something else `then`."""
    require_unchanged(path, None if left is None else left.text, None if then is None else then.text)
    raise ToolFailedError(f"Somebody else changed {path} after this session did, so nothing was restored.")


def _named(
    tool: ToolDescriptor, arguments: JsonObject, context: CallContext, report: CommandReport | None
) -> Iterator[str]:
    """The absolute paths inside the session's directories that a call says it changes."""
    if report is not None:
        yield from (_deleted(use) for use in report.paths if changes_path(use) and use.inside)
        return
    always = tool.roles.changes_files
    for (_, role, _), where in zip(tool.roles.located(arguments), context.locations, strict=False):
        if where.inside and (always or role.changes):
            yield where.path


def _deleted(use: PathUse) -> str:
    """The place of a file that a command changes; of a link, the link itself where the link would be deleted."""
    is_link = use.place.rpartition("/")[2] != use.path.rpartition("/")[2]
    return use.path if is_link and use.effect is PathEffect.DELETE else use.place
