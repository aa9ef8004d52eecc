"""Git notes on commits, below a reference of Punie's own: read and written as objects, so that no program runs."""

from __future__ import annotations

import itertools
import os
import re
import time

from dulwich.diff_tree import tree_changes
from dulwich.errors import NotTreeError
from dulwich.object_store import tree_lookup_path
from dulwich.objects import Blob, ObjectID, Tree
from dulwich.objects import Commit as GitCommit
from dulwich.objectspec import parse_commit
from dulwich.refs import Ref

from punie.adapters.git.checkout import Checkout
from punie.domain.errors import ToolFailedError
from punie.domain.values.display import one_line
from punie.ports.repository import CommitFiles

NOTES = Ref(b"refs/notes/punie")
_REVISION = re.compile(r"([^~^]+)((?:[~^]\d*)*?)(?:\^\{(?:commit)?\})?")
TRIES = 5
"""Other processes may write notes at the same time."""


def read_commit(checkout: Checkout, name: str) -> CommitFiles:
    """A commit against its first parent, with its note. Raises `ToolFailedError`."""
    store, shown = checkout.repo.object_store, one_line(name, 80)
    try:
        commit = _named(checkout, name)
    except (LookupError, ValueError):
        step = "Name a branch, a tag or an id; ~N and ^N behind it lead to its parents."
        raise ToolFailedError(f"There is no commit {shown} in {checkout.top}. {step}") from None
    before: ObjectID | None = None
    if commit.parents:
        if commit.parents[0] not in store:
            raise ToolFailedError(
                f"The parent of {shown} is not here, as in a shallow clone, so its files are not known. "
                "`git fetch --unshallow` brings it."
            )
        parent = store[commit.parents[0]]
        before = parent.tree if isinstance(parent, GitCommit) else None
    found = (change.new or change.old for change in tree_changes(store, before, commit.tree))
    paths = sorted({entry.path for entry in found if entry is not None})
    return CommitFiles(
        commit.id.decode(),
        float(commit.commit_time),
        commit.message.decode("utf-8", "replace"),
        {os.fsdecode(path): checkout.full(path) for path in paths},
        _note(checkout, commit.id),
    )


def _named(checkout: Checkout, name: str) -> GitCommit:
    """The commit that git means by a branch, a tag or an id, with `~N` and `^N` behind it.

    Raises `LookupError` or `ValueError`.
    """
    found = _REVISION.fullmatch(name)
    if found is None or "//" in f"/{found[1]}/":  # dulwich warns of empty parts
        raise ValueError(name)
    commit = parse_commit(checkout.repo, os.fsencode("HEAD" if found[1] == "@" else found[1]))
    for kind, digits in re.findall(r"([~^])(\d*)", found[2]):
        number = int(digits or 1)
        for parent in itertools.repeat(0, number) if kind == "~" else range(number)[-1:]:
            commit = parse_commit(checkout.repo, commit.parents[parent])
    return commit


def _note(checkout: Checkout, commit: ObjectID) -> bytes | None:
    """The note on a commit, in whichever of git's forms of the tree it is; None where there is none."""
    _, noted = checkout.repo.refs.follow(NOTES)
    if noted is None:
        return None
    store, tree = checkout.repo.object_store, _tree(checkout, noted).id
    for path in (commit, commit[:2] + b"/" + commit[2:], commit[:2] + b"/" + commit[2:4] + b"/" + commit[4:]):
        try:
            note = store[tree_lookup_path(store.__getitem__, tree, path)[1]]
        except (KeyError, NotTreeError):
            continue
        if isinstance(note, Blob):
            return note.data
    return None


def _tree(checkout: Checkout, noted: ObjectID) -> Tree:
    store = checkout.repo.object_store
    found = store[noted]
    tree = store[found.tree] if isinstance(found, GitCommit) else found
    if not isinstance(tree, Tree):
        raise ToolFailedError(f"{NOTES.decode()} is no reference of notes.")
    return tree


def write_note(checkout: Checkout, commit: str, text: str) -> None:
    """Put a note on a commit. Raises `ToolFailedError` where the reference leads to another one, such as a branch."""
    refs, store = checkout.repo.refs, checkout.repo.object_store
    of = store[ObjectID(commit.encode())]
    blob = Blob.from_string(text.encode())
    store.add_object(blob)
    for _ in range(TRIES):
        chain, old = refs.follow(NOTES)
        if chain != [NOTES]:
            raise ToolFailedError(f"{NOTES.decode()} leads to another reference.")
        tree = Tree() if old is None else _tree(checkout, old)
        tree.add(commit.encode(), 0o100644, ObjectID(blob.get_id(checkout.object_format)))
        store.add_object(tree)
        made = GitCommit()
        made.tree = ObjectID(tree.get_id(checkout.object_format))
        made.parents = [] if old is None else [old]
        made.author = made.committer = of.committer if isinstance(of, GitCommit) else b"Punie <>"
        made.author_time = made.commit_time = int(time.time())
        made.author_timezone = made.commit_timezone = 0
        made.message = b"Receipts\n"
        store.add_object(made)
        new = ObjectID(made.get_id(checkout.object_format))
        if refs.add_if_new(NOTES, new) if old is None else refs.set_if_equals(NOTES, old, new):
            return
    raise ToolFailedError("Other processes write notes on this repository all the time.")
