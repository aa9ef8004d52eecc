"""The wheel and the sdist of the last commit, built twice in ways that must not matter: both give the same bytes.

The two builds have their own clones in folders of different names and depths, umasks, time zones, languages, hash
seeds, homes and ages of the files; the wheel is built from the sdist. What they share is the commit, whose time is the
time of all that they write, and the locked build backend.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.release import contents, project
from tools.release.project import ROOT, ReleaseError

DIST = ROOT / "dist"
SUMS = "SHA256SUMS"


@dataclass(frozen=True)
class Circumstances:
    """What differs between two builds and may not show: `age_s` is added to the time of every file of the clone."""

    folder: str
    umask: int
    age_s: int
    environment: Mapping[str, str]


HERE_AND_NOW = Circumstances("a", 0o022, 0, {"TZ": "UTC", "LC_ALL": "C", "PYTHONHASHSEED": "1"})
ELSEWHERE = Circumstances(
    "somewhere/else entirely",
    0o077,
    -400_000_000,
    {"TZ": "Pacific/Kiritimati", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "2"},
)


def clone(root: Path, commit: str, place: Path, umask: int) -> None:
    """The files of that commit, with a repository of their own, as somebody with that umask gets them."""
    done = subprocess.run(
        ["git", "clone", "--quiet", "--no-checkout", "--shared", str(root), str(place)],
        umask=umask, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 0:
        command = ["git", "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", commit]
        done = subprocess.run(command, cwd=place, umask=umask, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"git could not give a clean copy of the commit: {done.stderr.strip()}")


def build_in(source: Path, out: Path, epoch: int, how: Circumstances) -> dict[str, Path]:
    """Build both from that folder into `out`, under those circumstances; each by its name."""
    home = out.parent / f"home-{out.name}"
    home.mkdir()
    for path in source.rglob("*"):
        if ".git" not in path.parts:
            found = path.stat()
            os.utime(path, (found.st_atime + how.age_s, found.st_mtime + how.age_s))
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(home),
        "SOURCE_DATE_EPOCH": str(epoch),
        **how.environment,
    }
    command = project.tool("build", "--no-isolation", "--outdir", str(out), str(source))
    done = subprocess.run(
        command, env=environment, umask=how.umask, capture_output=True, text=True, check=False, cwd=home
    )
    if done.returncode != 0:
        raise ReleaseError(f"the build failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return {path.name: path for path in sorted(out.iterdir())}


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build(root: Path = ROOT, into: Path = DIST) -> dict[str, Path]:
    """Build twice, compare, look inside, and leave the two files with their sums in `into`.

    Raises `ReleaseError` with every fault that was found; then `into` is as it was.
    """
    commit, epoch, version = project.git("rev-parse", "HEAD", root=root).strip(), project.commit_time(root), ""
    with tempfile.TemporaryDirectory(prefix="punie-build-") as scratch:
        built: list[dict[str, Path]] = []
        for number, how in enumerate((HERE_AND_NOW, ELSEWHERE)):
            source, out = Path(scratch) / how.folder / "punie", Path(scratch) / f"out-{number}"
            source.parent.mkdir(parents=True)
            clone(root, commit, source, how.umask)
            version = project.version(source)
            built.append(build_in(source, out, epoch, how))
        faults = differing(*built)
        known, places = project.committed(root), (scratch, str(root))
        for name, path in built[0].items():
            look = contents.wheel_problems if name.endswith(".whl") else contents.sdist_problems
            faults += look(path, known=known, version=version, places=places)
        if faults:
            raise ReleaseError("\n".join(faults))
        return _kept(built[0], into)


def differing(first: Mapping[str, Path], second: Mapping[str, Path]) -> list[str]:
    """How the files of one build differ from those of the other, a sentence each."""
    if first.keys() != second.keys():
        return [f"the two builds made different files: {sorted(first)} and {sorted(second)}"]
    different = [name for name in first if digest(first[name]) != digest(second[name])]
    return [f"{name}: the two builds differ, although the commit is the same" for name in different]


def _kept(built: Mapping[str, Path], into: Path) -> dict[str, Path]:
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    kept = {name: Path(shutil.copy(path, into / name)) for name, path in built.items()}
    lines = [f"{digest(path)}  {name}\n" for name, path in sorted(kept.items())]
    (into / SUMS).write_text("".join(lines), encoding="utf-8")
    return kept


def main() -> int:
    """Build, and say what was built."""
    try:
        if left_out := len(project.changed()):
            print(f"build: of the last commit; {left_out} changes of the working tree are not in it", file=sys.stderr)
        built = build()
    except ReleaseError as error:
        print(f"build: {error}", file=sys.stderr)
        return 1
    for name, path in built.items():
        print(f"build: dist/{name}  {path.stat().st_size:,} bytes  sha256 {digest(path)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
