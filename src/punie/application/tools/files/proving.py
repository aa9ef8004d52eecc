"""Proves or refutes the receipts of a commit by the audit trail of this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from math import floor

from attrs import define, field, frozen

from punie.application.tools.files.receipts import (
    MODEL,
    NOTE_LIMIT_BYTES,
    RECEIPT,
    SESSION,
    VERSION,
    as_object,
    sealed,
    trailers,
)
from punie.domain.permission.audit import AuditRow
from punie.domain.permission.rules import Verdict
from punie.domain.values.json_value import object_in
from punie.ports.repository import CommitFiles
from punie.ports.sessions import DELEGATED

PROVEN, OTHERS, REFUTED, UNKNOWN = "proven", "not by the session", "refuted", "unknown"
_CHANGES = ("tool", "command", "person")


@frozen
class FileProof:
    """The proof of one file of a commit: its standing, in one of four words, and why."""

    path: str
    standing: str
    why: str = ""


@frozen
class Proof:
    """The outcome for a whole commit. `said` is what holds for all of it, empty where each file has its own reason."""

    commit: str
    session: str
    model: str
    said: str
    files: Sequence[FileProof]

    @property
    def refuted(self) -> bool:
        """Whether anything is refuted."""
        return any(file.standing == REFUTED for file in self.files)


@define
class _Trail:
    """The rows of the audit trail that concern one session and these hashes."""

    session: str
    begins: float | None = None
    seals: set[tuple[object, object]] = field(factory=set[tuple[object, object]])
    known: bool = False
    by_hash: dict[str, Mapping[str, object]] = field(factory=dict[str, Mapping[str, object]])

    def read(self, rows: Iterable[AuditRow], wanted: frozenset[str]) -> None:
        for row in rows:
            if self.begins is not None and row.hash not in wanted and self.session not in row.text:
                continue
            record = as_object(row.text)
            at = record.get("at")
            if self.begins is None:
                self.begins = float(at) if isinstance(at, (int, float)) else 0.0
            if row.hash in wanted:
                self.by_hash[row.hash] = record
            if record.get("session_id") == self.session:
                self.known = True
                if record.get("tool") == RECEIPT and record.get("verdict") == Verdict.ALLOW:
                    self.seals.add((record.get("title"), record.get("arguments_digest")))

    def fault(self, made: CommitFiles, note: bytes, broken: str | None) -> tuple[str, str] | None:
        """The standing of every receipt, and why, where the note as a whole is not what the session sealed."""
        if broken is not None:
            return REFUTED, f"the audit trail of this machine cannot be trusted: {broken}"
        if not self.known:
            return UNKNOWN, "the audit of that session is not on this machine"
        if (sealed(made.id), hashlib.sha256(note).hexdigest()) in self.seals:
            return None
        if self.begins is not None and floor(self.begins) > made.at:  # git has whole seconds
            return UNKNOWN, "the audit trail of this machine begins later"
        return REFUTED, "the session sealed no such note on this commit"

    def receipt(self, path: str, given: Mapping[str, object]) -> FileProof:
        """The proof of one file, of a note that is sealed."""
        if given["change"] == "person":
            return FileProof(path, OTHERS)
        decision = given["decision"]
        if decision is None:
            return FileProof(path, UNKNOWN, "the decision was not found when the commit was made")
        record = self.by_hash.get(str(decision))
        if record is None:
            return FileProof(path, REFUTED, "its decision is not in the audit trail")
        of = str(record.get("session_id"))
        if of != self.session and not of.startswith(f"{DELEGATED}{self.session}_"):
            return FileProof(path, REFUTED, "its decision is one of another session")
        if record.get("verdict") != Verdict.ALLOW:
            return FileProof(path, REFUTED, "its decision was a denial")
        return FileProof(path, PROVEN, f"{given['change']} {record.get('tool')}, decision {decision}")


def prove(made: CommitFiles, rows: Iterable[AuditRow], broken: str | None) -> Proof:
    """Hold a commit against the audit trail. `broken` is the fault of its chain, None where all fits."""
    named = list(trailers(made.message))
    claimed = {value for name, value in named if name == SESSION.lower()}
    if made.note is None:
        said = "This commit has no receipts."
        if claimed:
            said = "This commit names a session and has no note: it was amended, rebased or fetched without its notes."
        files = [FileProof(path, OTHERS, "no receipt") for path in made.files]
        return Proof(made.id, ", ".join(sorted(claimed)), "", said, files)
    note = _read(made.note)
    if isinstance(note, str):
        return _whole(made, "", "", (REFUTED, f"its note is {note}"))
    session, model, files = str(note["session"]), str(note["model"]), object_in(note["files"])
    if named and (claimed != {session} or {value for name, value in named if name == MODEL.lower()} != {model}):
        return _whole(made, session, model, (REFUTED, "its message and its note name not the same session and model"))
    receipts = {path: object_in(given) for path, given in files.items()}
    trail = _Trail(session)
    trail.read(rows, frozenset(str(given["decision"]) for given in receipts.values()))
    fault = trail.fault(made, made.note, broken)
    if fault is not None:
        return _whole(made, session, model, fault)
    found = [
        trail.receipt(path, receipts[path]) if path in receipts else FileProof(path, OTHERS, "no receipt")
        for path in made.files
    ]
    return Proof(made.id, session, model, "", found)


def _whole(made: CommitFiles, session: str, model: str, fault: tuple[str, str]) -> Proof:
    standing, why = fault
    # A commit without files is refuted too, which one row for all of it says.
    files = [FileProof(path, standing, why) for path in made.files] or [FileProof("", standing, why)]
    return Proof(made.id, session, model, why, files)


def _read(data: bytes) -> Mapping[str, object] | str:
    """The note, or why it is none."""
    if len(data) > NOTE_LIMIT_BYTES:
        return f"larger than {NOTE_LIMIT_BYTES} bytes"
    note = as_object(data)
    files = object_in(note.get("files"))
    texts = all(isinstance(note.get(name), str) and note[name] for name in ("session", "model"))
    receipts = [object_in(given) for given in files.values()]
    sound = all(one.get("change") in _CHANGES and isinstance(one.get("decision", 0), str | None) for one in receipts)
    if note.get("version") != VERSION or not texts or not isinstance(note.get("files"), dict) or not sound:
        return "no receipt that this version of Punie makes"
    return note
