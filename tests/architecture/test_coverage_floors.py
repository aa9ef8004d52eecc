"""The arithmetic behind the coverage floors of R-13."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from tools import check_coverage


def summary(lines: tuple[int, int], branches: tuple[int, int]) -> dict[str, int]:
    """A file's counts as coverage reports them, each pair covered of all."""
    return {
        "covered_lines": lines[0],
        "num_statements": lines[1],
        "missing_lines": lines[1] - lines[0],
        "covered_branches": branches[0],
        "num_branches": branches[1],
        "missing_branches": branches[1] - branches[0],
    }


def run(mocker: MockerFixture, files: dict[str, dict[str, int]]) -> int:
    read = mocker.patch.object(check_coverage, "measured", return_value=files)
    code = check_coverage.main()
    read.assert_called_once_with()
    return code


def test_floors_that_are_reached_pass(mocker: MockerFixture) -> None:
    files = {"domain/tools/tool.py": summary((95, 100), (19, 20)), "adapters/acp/wire.py": summary((90, 100), (18, 20))}
    assert run(mocker, files) == 0


@pytest.mark.parametrize("room", ["domain", "ports", "application"])
def test_the_inside_has_the_higher_floor(mocker: MockerFixture, capsys: pytest.CaptureFixture[str], room: str) -> None:
    assert run(mocker, {f"{room}/thing.py": summary((90, 100), (18, 20))}) == 1
    assert f"{room}/thing.py: 10 lines, 2 branches missed" in capsys.readouterr().out


def test_untested_branches_cannot_hide_behind_many_lines(mocker: MockerFixture) -> None:
    assert run(mocker, {"domain/tools/tool.py": summary((1000, 1000), (8, 10))}) == 1


def test_the_whole_has_a_floor_too(mocker: MockerFixture) -> None:
    assert run(mocker, {"adapters/acp/wire.py": summary((84, 100), (0, 0))}) == 1


def test_without_data_it_fails_and_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(check_coverage, "ROOT", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    assert check_coverage.main() == 1
    assert "run the tests with --cov first" in capsys.readouterr().err
