"""The reasons that a person reads about a path outside the session's directories."""

from __future__ import annotations

from punie.domain.permission.path_findings import outside


def test_a_path_with_a_nul_is_not_told_to_be_elsewhere() -> None:
    assert outside("/p/a\0b") == "no path holds a NUL character"
    assert outside("/etc/x") == "/etc/x is outside the session's directories"
