"""How a command is put into its box; tests/integration/test_sandbox.py runs the real program."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from punie.adapters.local.programs.boxes import BubblewrapBoxes
from punie.domain.errors import ToolFailedError
from punie.domain.values.terminal import Command

BOX = BubblewrapBoxes(("/repo",), "/home/u", find=lambda name: f"/usr/bin/{name}")
COMMAND = Command.of("make", ("test",), "/repo/sub")


def test_the_command_comes_last_and_word_by_word() -> None:
    boxed = BOX.confine(COMMAND).command
    assert boxed.program == "/usr/bin/bwrap"
    assert boxed.args[-5:] == ("--chdir", "/repo/sub", "--", "make", "test")


def test_what_a_person_reads_and_the_bounds_stay() -> None:
    boxed = BOX.confine(evolve(Command.of("make -j", None, "/repo"), memory_mb=64)).command
    assert (boxed.line, boxed.cwd, boxed.memory_mb) == ("make -j", "/repo", 64)


def test_there_is_no_network_unless_it_was_asked_for() -> None:
    assert "--unshare-net" in BOX.confine(COMMAND).command.args
    online = BubblewrapBoxes(("/repo",), "/home/u", network=True, find=lambda name: name)
    assert "--unshare-net" not in online.confine(COMMAND).command.args


def test_asked_for_and_missing_is_a_refusal() -> None:
    box = BubblewrapBoxes(("/repo",), "/home/u", find=lambda _name: None)
    with pytest.raises(ToolFailedError, match="nothing was run"):
        box.confine(COMMAND)


def test_secrets_of_the_home_and_hidden_folders_are_emptied(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".netrc").write_text("password")
    state = tmp_path / "state"
    state.mkdir()
    box = BubblewrapBoxes((str(tmp_path),), str(tmp_path), hidden=(str(state), "/nowhere"), find=lambda name: name)
    args = box.confine(COMMAND).command.args
    assert [args[at + 1] for at, option in enumerate(args) if option == "--tmpfs"] == [
        "/tmp",
        str(tmp_path / ".aws"),
        str(state),
    ]
    assert args[args.index(str(tmp_path / ".netrc")) - 1] == "/dev/null"
