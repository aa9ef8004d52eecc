"""Receipts of commits: which of a commit's files the session changed, and by which decision of the audit trail.

A row of the audit trail seals each note, so that a note which was changed, made up or put on another commit fits no
row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress

from attrs import frozen

from punie.domain.errors import ToldToModel
from punie.domain.permission.audit import DecisionRecord
from punie.domain.permission.grants import text_digest
from punie.domain.permission.rules import AnsweredBy, Verdict
from punie.domain.values.display import one_line
from punie.domain.values.json_value import object_in
from punie.domain.values.person import Person
from punie.ports.history import FileChange, FileHistory, digest_of
from punie.ports.permission import AuditTrail
from punie.ports.repository import CommitFiles, Repository
from punie.ports.workspace import PathGuard

VERSION = 1
NOTE_LIMIT_BYTES = 1_000_000
ROWS = 20_000
"""Rows of the audit trail that are looked through for the decisions of a commit's changes."""

COMMITS = 20
"""Commits of one command that get receipts, at most."""

SESSION, MODEL = "Punie-Session", "Punie-Model"
RECEIPT = "receipts"
"""The name in place of a tool's in the row that seals a note."""

_OWN = re.compile(rf"(?im)^(?:{SESSION}|{MODEL})[ \t]*:.*\n?")
_TRAILERS = re.compile(r"(?:[A-Za-z0-9-]+:[ \t].*\n)+")


@frozen
class Receipts:
    """Makes the receipts of the commits of one session and person; lives as long as the session.

    `model` gives the name of the model in use; `look` and `write` read a commit and put a note on it.
    """

    session_id: str
    person: Person
    history: FileHistory
    repository: Repository
    guard: PathGuard
    audit: AuditTrail
    model: Callable[[], str]
    look: Callable[[str], Awaitable[CommitFiles]]
    write: Callable[[str, str], Awaitable[None]]

    def signed(self, message: str) -> str:
        """The message with the trailers, in place of those that it names itself; empty where it says nothing else."""
        plain = _OWN.sub("", message).strip()
        _, blank, last = plain.rpartition("\n\n")
        joint = "\n" if blank and _TRAILERS.fullmatch(f"{last}\n") else "\n\n"
        trailers = f"{SESSION}: {self.session_id}\n{MODEL}: {one_line(self.model(), 200)}"
        return f"{plain}{joint}{trailers}" if plain else ""

    async def keep(self, commit: str, call_id: str) -> str:
        """Seal and write the note on a commit; returns a line that says why there is none, else nothing."""
        try:
            made = await self.look(commit)
            return await self._note(made, await self._files(made), call_id)
        except ToldToModel as error:
            return f"\nIt has no receipts: {error}"

    async def head(self) -> str | None:
        """The id of the last commit; None where there is none."""
        with suppress(ToldToModel):
            for commit in await self.repository.log(1):
                return commit.id
        return None

    async def keep_since(self, head: str | None, call_id: str) -> None:
        """As `keep` for the commits that a command put on top of `head`; one without a change of the session has none.

        Nothing is done where `head` is not below the last commit: the command went elsewhere.
        """
        with suppress(ToldToModel):
            ids = [commit.id for commit in await self.repository.log(COMMITS + 1)]
            until = ids.index(head) if head in ids else len(ids) if head is None else 0
            for commit in reversed(ids[: min(until, COMMITS)]):
                made = await self.look(commit)
                files = await self._files(made)
                if made.note is None and any(file["change"] != "person" for file in files.values()):
                    await self._note(made, files, call_id)

    async def _note(self, made: CommitFiles, files: Mapping[str, Mapping[str, str | None]], call_id: str) -> str:
        model = dict(trailers(made.message)).get(MODEL.lower()) or one_line(self.model(), 200)
        text = json.dumps({"version": VERSION, "session": self.session_id, "model": model, "files": files})
        if len(text) > NOTE_LIMIT_BYTES:
            return f"\nIt has no receipts: they would be larger than {NOTE_LIMIT_BYTES} bytes."
        self.audit.record(self._seal(made, call_id, text).of(self.person))
        await self.audit.commit()
        await self.write(made.id, text)
        return ""

    def _seal(self, made: CommitFiles, call_id: str, note: str) -> DecisionRecord:
        return DecisionRecord(
            at=made.at, session_id=self.session_id, call_id=call_id, tool=RECEIPT, source="built-in", mode="",
            verdict=Verdict.ALLOW, rule="receipts.commits", reason="the user's settings",
            answered_by=AnsweredBy.POLICY, arguments_digest=text_digest(note), definition="", title=sealed(made.id),
        )  # fmt: skip

    async def _files(self, made: CommitFiles) -> dict[str, dict[str, str | None]]:
        last: dict[str, FileChange] = {}
        folders: dict[str, str] = {}
        for change in await self.history.changes():
            folder, _, name = change.path.rpartition("/")
            if folder not in folders:
                folders[folder] = (await self.guard.locate(folder or "/")).path.rstrip("/")
            last[f"{folders[folder]}/{name}"] = change
        own = {name: last[path] for name, path in made.files.items() if path in last}
        own = {name: change for name, change in own.items() if await self._left(change, made)}
        rows = await self._decisions({change.call for change in own.values() if change.call})
        none = FileChange("", "", "", "", "person")
        return {
            name: {"change": own.get(name, none).by, "decision": rows.get(own.get(name, none).call)}
            for name in made.files
        }

    async def _left(self, change: FileChange, made: CommitFiles) -> bool:
        """Whether the commit has the file as this change of the session left it."""
        if change.by == "person" or not change.sure:
            return False
        key = (await self.repository.committed(change.path, made.id)).key
        return change.left == key or (" " in key and digest_of(change.left) == digest_of(key))

    async def _decisions(self, calls: set[str]) -> Mapping[str, str]:
        """The hashes of the rows by which these calls were allowed."""
        found: dict[str, str] = {}
        for row in await self.audit.latest(ROWS) if calls else ():
            record = as_object(row.text)
            call = record.get("call_id")
            if isinstance(call, str) and call in calls and record.get("verdict") == Verdict.ALLOW:
                found[call] = row.hash
        return found


def sealed(commit: str) -> str:
    """The title of the row that seals the note on a commit."""
    return f"Receipts of commit {commit}"


def as_object(text: str | bytes) -> Mapping[str, object]:
    """The object in a text of JSON; an empty one where the text is something else."""
    try:
        return object_in(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def trailers(message: str) -> Iterable[tuple[str, str]]:
    """The trailers of Punie in a message: their names and values."""
    for line in _OWN.findall(message):
        name, _, value = line.partition(":")
        yield name.strip().lower(), value.strip()
