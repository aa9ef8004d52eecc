"""What is being released: the version, its notes, the commit, and the files that git knows."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "build/release" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
"""The interpreter that has what requirements/release.txt locks, beside and not in our own environment."""
HEADING = re.compile(r"^## +\[?(?P<version>[^\]\s]+)\]?(?: +- +(?P<date>\d{4}-\d{2}-\d{2}))?\s*$", re.MULTILINE)
SEMVER = re.compile(r"\d+\.\d+\.\d+")


class ReleaseError(Exception):
    """A release cannot go on: what is wrong and what to do about it."""


def version(root: Path = ROOT) -> str:
    """The one place that says it, read without importing anything."""
    for node in ast.parse((root / "src/punie/__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__version__"]:
            return str(ast.literal_eval(node.value))
    raise ReleaseError("src/punie/__init__.py says no __version__")


def notes(changelog: str, wanted: str) -> str:
    """The section of that version. Raises `ReleaseError` where there is none, or it has no date or no text."""
    headings = list(HEADING.finditer(changelog))
    for found, after in zip(headings, [*headings[1:], None], strict=True):
        if found["version"] != wanted:
            continue
        text = changelog[found.end() : after.start() if after else None].strip()
        if not found["date"]:
            raise ReleaseError(f"CHANGELOG.md gives {wanted} no date: write `## {wanted} - YYYY-MM-DD`")
        if not text:
            raise ReleaseError(f"CHANGELOG.md says nothing under {wanted}")
        return text + "\n"
    raise ReleaseError(f"CHANGELOG.md has no section `## {wanted} - YYYY-MM-DD`: give `## Unreleased` that name")


def git(*words: str, root: Path = ROOT) -> str:
    """What git answers. Raises `ReleaseError` with its own words."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"git {words[0]} failed: {done.stderr.strip()}")
    return done.stdout


def commit_time(root: Path = ROOT) -> int:
    """When the last commit was made, in seconds since 1970: what SOURCE_DATE_EPOCH is set to."""
    return int(git("log", "-1", "--format=%ct", root=root))


def committed(root: Path = ROOT) -> set[str]:
    """The files of the last commit, as paths from the root with `/`."""
    return {name for name in git("ls-tree", "-r", "-z", "--name-only", "HEAD", root=root).split("\0") if name}


def changed(root: Path = ROOT) -> list[str]:
    """What the working tree has and the last commit does not, a line a file as `git status --short` says it."""
    return git("status", "--short", "--untracked-files=all", root=root).splitlines()


def tool(module: str, *arguments: str) -> list[str]:
    """The command line of one of the release's own tools. Raises `ReleaseError` where they are not installed."""
    if not TOOLS.exists():
        raise ReleaseError("the tools of requirements/release.txt are not installed: run `make build` once")
    return [str(TOOLS), "-m", module, *arguments]
