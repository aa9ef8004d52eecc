"""The changes that a session makes to files: kept around every call, so that they can be taken back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import anyio
from attrs import define, evolve, field

from punie.application.tools.session_tool import CallContext, PreparedCall
from punie.domain.errors import ToldToModel, ToolFailedError
from punie.domain.permission.path_findings import changes as changes_path
from punie.domain.permission.path_findings import own_file_name
from punie.domain.permission.policy import only_looks
from punie.domain.tools.tool import ToolDescriptor
from punie.domain.values.json_value import JsonObject
from punie.domain.values.paths import is_inside
from punie.ports.history import ABSENT, OTHER, FileChange, FileHistory, FileVersion
from punie.ports.machine import Clock
from punie.ports.workspace import PathGuard, Repository, WorkTree
from shellsight.report import CommandPart, CommandReport, PathEffect, PathUse, Proviso, Standing
from shellsight.secret_names import is_secret

BEGIN_LIMIT_S = 3.0
"""How long the state of a large working tree may take; without it, more is asked."""

WATCHED_LIMIT = 100
"""Changed files that are compared around a command which does not name them."""

_PLAIN_NAMES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./@+,:=-")


@define(eq=False)
class SessionChanges:
    """The changes of a session, with the content that was there before; lives as long as the session.

    `active` is False where this machine's disk is not to be read: then nothing is kept, and nothing can be taken back.
    """

    history: FileHistory
    repository: Repository
    guard: PathGuard
    clock: Clock
    active: bool = True
    _begun: WorkTree | None = field(default=None, init=False)
    _asked: bool = field(default=False, init=False)
    _ran: list[tuple[float, float]] = field(factory=list[tuple[float, float]], init=False)

    # ------------------------------------------------------------ keeping

    @asynccontextmanager
    async def kept(
        self, tool: ToolDescriptor, arguments: JsonObject, context: CallContext, prepared: PreparedCall,
        report: CommandReport | None,
    ) -> AsyncGenerator[None]:  # fmt: skip
        """A block around a call's effect: what its files held before and after it is kept."""
        if not self.active or only_looks(tool) or (report is not None and report.standing is Standing.SAFE):
            yield
            return
        await self.begun()
        before = {path: await self.history.look(path) for path in _named(tool, arguments, context, report)}
        for diff in prepared.diffs:
            before[diff.path] = _as_shown(await self.history.look(diff.path), diff.old_text)
        known = await self._last()
        for path in list(known)[-WATCHED_LIMIT:] if report is not None else ():
            now = await self.history.look(path)
            if path not in before and now.key == known[path].left:
                before[path] = now
        began_s = self.clock.epoch_s()
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await self._keep(before, context.turn_id, tool.name, prepared, is_command=report is not None)
            if report is not None:
                self._ran.append((began_s, self.clock.epoch_s()))

    async def _keep(
        self, before: dict[str, FileVersion], turn: str, tool: str, prepared: PreparedCall, *, is_command: bool
    ) -> None:
        by, written = "command" if is_command else "tool", {diff.path: diff.new_text for diff in prepared.diffs}
        for path, was in before.items():
            left = await self.history.look(path)
            if left.key != was.key:
                left = _as_shown(left, written.get(path) if left.key != ABSENT else None)
                await self.history.record(FileChange(turn, path, was.key, left.key, by, tool), was, left)

    async def _last(self) -> dict[str, FileChange]:
        """The last change of each file, the file that was changed last at the end."""
        found: dict[str, FileChange] = {}
        for change in await self.history.changes():
            found.pop(change.path, None)
            found[change.path] = change
        return found

    async def begun(self) -> WorkTree | None:
        """The working tree as it was before the session's first change; None where that is not known."""
        if not self._asked:
            self._asked = True
            with anyio.move_on_after(BEGIN_LIMIT_S):
                self._begun = await self._work_tree()
        return self._begun

    async def _work_tree(self) -> WorkTree | None:
        try:
            return await self.repository.work_tree()
        except ToldToModel:
            return None

    # ------------------------------------------------------------ taking back

    async def former(self, path: str, to: str, now: FileVersion) -> FileVersion:
        """The version to bring a file back to. `to` is "session_start", "last_turn" or "head"; `now` is what it holds.

        Raises `ToolFailedError` where the session did not change the file, or somebody else changed it since.
        """
        made = [change for change in await self.history.changes() if change.path == path]
        if not made:
            return await self._by_command(path, to)
        first = 0 if to != "last_turn" else next(i for i, one in enumerate(made) if one.turn == made[-1].turn)
        keys = [*(change.was for change in made[first + 1 :]), now.key]
        for change, key in zip(made[first:], keys, strict=True):
            if change.left != key:
                other = now if key == now.key else await self.history.version(key)
                raise StrangerError(await self.history.version(change.left), other)
        if to == "head":
            return await self.repository.committed(path)
        version = await self.history.version(made[first].was)
        if version is None:
            raise ToolFailedError(f"What {path} held before was not kept: too large, a folder or a device.")
        return version

    async def _by_command(self, path: str, to: str) -> FileVersion:
        """The committed version of a file that was clean and that only commands of this session wrote."""
        begun, wrote_s = await self.begun(), await self.history.written_s(path)
        ours = wrote_s is not None and any(start - 1 <= wrote_s <= end + 1 for start, end in self._ran)
        if begun is None or path in begun.changed or not ours:
            raise ToolFailedError(
                f"As far as it is known, this session did not change {path}, so nothing was restored. "
                "Changes of others are theirs; edit_file changes single places."
            )
        return await self.repository.committed(path, None if to == "head" else begun.head)

    # ------------------------------------------------------------ facts for the policy

    async def settled(self, report: CommandReport) -> CommandReport:
        """The report, with each part ordinary whose proviso holds, and its paths those that it would touch."""
        if not self.active or all(part.proviso is None for part in report.parts):
            return report
        try:
            return evolve(report, parts=tuple([await self._settled(part) for part in report.parts]))
        except ToldToModel:
            return report

    async def _settled(self, part: CommandPart) -> CommandPart:
        if part.proviso is None or any(use.where is None or not use.where.inside for use in part.paths):
            return part
        changed = [use for use in part.paths if changes_path(use)]
        rest = tuple(use for use in part.paths if not changes_path(use))
        match part.proviso:
            case Proviso.EXPENDABLE:
                holds = all([await self._expendable(use) for use in changed])
                paths = part.paths
            case Proviso.TRACKED:
                names = await self._tracked(changed)
                holds = names is not None
                paths = (*rest, *await self._uses(names or ()))
            case _:
                found = await self._changed_back(part, changed)
                holds = found is not None
                paths = (*rest, *await self._uses(found or ()))
        return evolve(part, standing=Standing.ORDINARY, proviso=None, paths=paths) if holds else part

    async def _uses(self, paths: tuple[str, ...]) -> list[PathUse]:
        return [PathUse(path, PathEffect.WRITE, where=await self.guard.locate(path)) for path in paths]

    async def _expendable(self, use: PathUse) -> bool:
        path = _deleted(use)
        mine = [change for change in await self.history.changes() if change.path == path]
        if mine and mine[0].was == ABSENT:
            return mine[-1].left == (await self.history.look(path)).key
        files = await self.repository.ignored(path)
        return bool(files) and not any(is_secret(file) or own_file_name(file) for file in files or ())

    async def _tracked(self, changed: list[PathUse]) -> tuple[str, ...] | None:
        """Of the files that git tracks there, those that a decision looks at by name; None for a name with blanks."""
        folders = tuple(_place(use) for use in changed)
        if not await self.repository.covers(folders):
            return None
        names = [path for path in await self.repository.tracked() if is_inside(path, folders)]
        if any(not _PLAIN_NAMES.issuperset(path) or "/-" in path for path in names):
            return None
        return tuple(path for path in names if is_secret(path) or own_file_name(path))

    async def _changed_back(self, part: CommandPart, changed: list[PathUse]) -> tuple[str, ...] | None:
        """The files that git would change back; None unless they had no change when the session began."""
        begun, now = await self.begun(), await self._work_tree()
        if begun is None or now is None or begun.top != now.top:
            return None
        if not await self.repository.covers(tuple(_place(use) for use in part.paths)):
            return None
        if part.proviso is Proviso.STASHED:
            return None if begun.stashed or not begun.whole else ()
        if not changed and not begun.whole:
            return None
        places = tuple(_place(use) for use in changed) or (begun.top,)
        if any(is_inside(path, places) for path in begun.changed):
            return None
        return tuple(sorted(path for path in now.changed if is_inside(path, places)))


class StrangerError(Exception):
    """Somebody else changed a file after the session did: what the session `left`, and what was there `then`."""

    def __init__(self, left: FileVersion | None, then: FileVersion | None) -> None:
        super().__init__("changed by somebody else")
        self.left, self.then = left, then


def _named(
    tool: ToolDescriptor, arguments: JsonObject, context: CallContext, report: CommandReport | None
) -> Iterator[str]:
    """The absolute paths inside the session's directories that a call says it changes."""
    if report is not None:
        yield from (_deleted(use) for use in report.paths if changes_path(use) and _inside(use))
        return
    always = tool.roles.changes_files
    for (_, role, _), where in zip(tool.roles.located(arguments), context.locations, strict=False):
        if where.inside and (always or role.changes):
            yield where.path


def _inside(use: PathUse) -> bool:
    return use.where is not None and use.where.inside


def _place(use: PathUse) -> str:
    return use.path if use.where is None else use.where.path


def _deleted(use: PathUse) -> str:
    """The place of a file that a command changes; of a link, the link itself where the link would be deleted."""
    place = _place(use)
    is_link = place.rpartition("/")[2] != use.path.rpartition("/")[2]
    return use.path if is_link and use.effect is PathEffect.DELETE else place


def _as_shown(version: FileVersion, text: str | None) -> FileVersion:
    """The version with the text that the client shows or wrote, which its disk may not hold yet."""
    if text is None or version.text == text or version.key == OTHER:
        return version
    return FileVersion(version.mode or 0o100644, text.encode("utf-8", "surrogatepass"))
