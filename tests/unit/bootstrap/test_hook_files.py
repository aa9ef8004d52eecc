"""The files of hooks that count: the user's, and a project's once its content is trusted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from punie.bootstrap.hook_files import RELATIVE, UNTRUSTED, FoundHooks, configured_hooks

HOOKS = json.dumps({"Stop": [{"hooks": [{"type": "command", "command": "sh ./check.sh"}]}]})


def written(path: Path, text: str = HOOKS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def used(found: tuple[FoundHooks, ...]) -> int:
    return sum(len(one.read.hooks) for one in found)


def test_only_the_content_that_was_trusted_counts(tmp_path: Path) -> None:
    project, environ = tmp_path / "project", {"PUNIE_HOME": str(tmp_path / "home")}
    file, script = written(project / ".punie/hooks.json"), project / "check.sh"
    kept: dict[str, str] = {}

    def found() -> tuple[FoundHooks, ...]:
        return configured_hooks(environ, str(project), lambda path, digest: kept.get(path) == digest)

    def trust() -> None:
        kept[str(file)] = seen[-1]
        assert used(found()) == 1

    seen: list[str] = []
    (untrusted,) = configured_hooks(environ, str(project), lambda _path, digest: bool(seen.append(digest)))
    assert untrusted.read.problems == (UNTRUSTED,)
    trust()
    script.write_text("exit 2")
    assert used(found()) == 0, "a script that was not there"
    configured_hooks(environ, str(project), lambda _path, digest: bool(seen.append(digest)))
    trust()
    script.write_text("exit 3")
    assert used(found()) == 0, "a script that changed"
    script.write_text("exit 2")
    trust()
    file.unlink()
    file.symlink_to(written(tmp_path / "elsewhere.json", HOOKS.replace("sh", "bash")))
    assert used(found()) == 0, "a link to another content"


def test_the_file_of_another_folder_does_not_count(tmp_path: Path) -> None:
    written(tmp_path / ".punie/hooks.json")
    written(tmp_path / "project/nested/.punie/hooks.json")
    assert configured_hooks({"PUNIE_HOME": str(tmp_path / "home")}, str(tmp_path / "project"), lambda *_: True) == ()


@pytest.mark.parametrize("environ", [{"PUNIE_HOME": ".punie"}, {"PUNIE_CONFIG": ".punie/config.toml"}])
def test_a_project_cannot_pass_for_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    written(tmp_path / ".punie/hooks.json")
    monkeypatch.chdir(tmp_path)
    found = configured_hooks(environ, str(tmp_path), lambda *_: False)
    assert used(found) == 0
    assert [one.read.problems for one in found] == [(RELATIVE,), (UNTRUSTED,)]


def test_the_user_s_file_counts_and_one_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    environ = {"PUNIE_HOME": str(tmp_path / "home")}
    mine = written(tmp_path / "home/hooks.json")
    assert used(configured_hooks(environ, str(tmp_path / "p"), lambda *_: False)) == 1
    for text in ("{", '{"Stop": [{"hooks": [{"type": "command", "command": "echo \'"}]}', " " * 2_000_000):
        mine.write_text(text)
        (broken,) = configured_hooks(environ, str(tmp_path / "p"), lambda *_: False)
        assert broken.read.problems
    mine.write_text('{"Stop": [{"hooks": [{"type": "command", "command": "echo \'"}]}]}')
    assert used(configured_hooks(environ, str(tmp_path / "p"), lambda *_: False)) == 1
