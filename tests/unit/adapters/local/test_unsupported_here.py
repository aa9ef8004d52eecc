"""Where Punie has no hands of its own yet, it says so and does nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from punie.adapters.git.repository import DulwichRepository
from punie.adapters.local.files.file_tree import LocalFileTree
from punie.adapters.local.files.path_guard import LocalPathGuard
from punie.adapters.local.files.workspace import LocalWorkspace
from punie.adapters.local.programs.terminals import LocalTerminals
from punie.domain.errors import UnsupportedHereError
from punie.domain.values.terminal import Command
from punie.ports.workspace import Sought

pytestmark = pytest.mark.anyio


async def test_another_operating_system_gets_a_clear_answer_from_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path.resolve())
    guard = LocalPathGuard((root,), root)
    workspace, tree, repository = LocalWorkspace(guard), LocalFileTree(guard, (root,)), DulwichRepository(root, (root,))
    async with LocalTerminals() as terminals:
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(os, "name", "nt")
            for ask in (
                workspace.read_text(f"{root}/a"),
                workspace.write_text(f"{root}/a", "x"),
                terminals.create(Command.of(sys.executable, (), root)),
                tree.list_files(root, recursive=True, limit=1),
                tree.search_text(root, Sought("x"), limit=1),
                repository.status(),
            ):
                with pytest.raises(UnsupportedHereError, match=r"not .* on this operating system yet"):
                    await ask
    assert list(tmp_path.iterdir()) == []
