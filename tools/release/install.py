"""The wheel in clean environments, as its users install it, with pip and with `uv tool install`; and it works there.

Each environment is new, below a temporary folder, with a home of its own that is empty and no keys. Dependencies come
from the index that this machine's pip is set up for, in today's versions, as they do for users; with `--wheelhouse DIR`
from that folder and no index (`pip download -d DIR -r requirements/runtime.txt` fills one).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path

from tools.release import probe, project
from tools.release.build import DIST
from tools.release.project import ReleaseError

TIME_S = 900
BIN = "Scripts" if sys.platform == "win32" else "bin"
SETTINGS = ("PIP_", "UV_", "SSL_CERT_", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")
"""What may pass into the clean environments: how to reach the index. Where programs are, too."""


def wheel_in(dist: Path = DIST) -> Path:
    """The one wheel there. Raises `ReleaseError` where there is none, or more."""
    wheels = sorted(dist.glob("punie-*.whl"))
    if len(wheels) != 1:
        raise ReleaseError(f"dist/ has {len(wheels)} wheels, not one: run `make build`")
    return wheels[0]


def clean_environment(home: Path) -> dict[str, str]:
    """Nothing of ours but the way to the index."""
    kept = {name: value for name, value in os.environ.items() if name == "PATH" or name.startswith(SETTINGS)}
    return {**kept, "HOME": str(home), "LANG": "C.UTF-8"}


def run(command: list[str], environment: Mapping[str, str], cwd: Path) -> str:
    """What it printed. Raises `ReleaseError` with the end of what it said."""
    try:
        done = subprocess.run(
            command, env=dict(environment), cwd=cwd, capture_output=True, text=True, check=False, timeout=TIME_S,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise ReleaseError(f"{Path(command[0]).name} {command[1]} took more than {TIME_S} s") from error
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()[-1500:]
        raise ReleaseError(f"{' '.join([Path(command[0]).name, *command[1:3]])} ended with {done.returncode}:\n{said}")
    return done.stdout


def with_pip(wheel: Path, place: Path, environment: Mapping[str, str], wheelhouse: Path | None) -> Path:
    """Install with pip into a new virtual environment; the console script."""
    venv.create(place / "pip", with_pip=True)
    python = place / "pip" / BIN / "python"
    offline = ["--no-index", "--find-links", str(wheelhouse)] if wheelhouse else []
    run([str(python), "-m", "pip", "install", "--quiet", *offline, str(wheel)], environment, place)
    run([str(python), "-m", "pip", "check"], environment, place)
    return place / "pip" / BIN / "punie"


def with_uv(wheel: Path, place: Path, environment: Mapping[str, str], wheelhouse: Path | None) -> Path:
    """Install with `uv tool install` into folders of its own; the console script."""
    folders = {f"UV_{name}": str(place / "uv" / name.lower()) for name in ("TOOL_DIR", "TOOL_BIN_DIR", "CACHE_DIR")}
    offline = ["--no-index", "--find-links", str(wheelhouse)] if wheelhouse else []
    command = [*project.tool("uv", "tool", "install", "--quiet", "--python", sys.executable), *offline, str(wheel)]
    run(command, {**environment, **folders}, place)
    return place / "uv" / "tool_bin_dir" / "punie"


def works(script: Path, version: str, environment: Mapping[str, str], place: Path) -> None:
    """The version, the demo to its end, and the registry's questions. Raises `ReleaseError` with what does not hold."""
    said = run([str(script), "--version"], environment, place).strip()
    if said != f"punie {version}":
        raise ReleaseError(f"--version says {said!r}, not punie {version}")
    if "What happened" not in (played := run([str(script), "demo"], environment, place)):
        raise ReleaseError(f"the demo did not come to its end:\n{played[-1500:]}")
    if faults := probe.faults([str(script), "acp"], environment=environment):
        raise ReleaseError("\n".join(faults))
    if left := sorted(path.name for path in place.iterdir()):
        raise ReleaseError(f"the working directory was empty, and has now {left}")


def check(wheel: Path, version: str, wheelhouse: Path | None = None) -> list[str]:
    """Both ways; a line for each that works. Raises `ReleaseError` at the first that does not."""
    told: list[str] = []
    for name, install in (("pip install", with_pip), ("uv tool install", with_uv)):
        with tempfile.TemporaryDirectory(prefix="punie-install-") as scratch:
            place, home, empty = Path(scratch) / "place", Path(scratch) / "home", Path(scratch) / "empty"
            for folder in (place, home, empty):
                folder.mkdir()
            environment = clean_environment(home)
            try:
                script = install(wheel, place, environment, wheelhouse)
                works(script, version, {"HOME": str(home), "PATH": environment.get("PATH", "")}, empty)
            except ReleaseError as error:
                raise ReleaseError(f"{name}: {error}") from error
            told.append(f"{name}: punie --version, punie demo and punie acp work in an environment of their own")
    return told


def main(arguments: list[str]) -> int:
    """Install what `make build` left in dist/."""
    house = Path(arguments[arguments.index("--wheelhouse") + 1]).resolve() if "--wheelhouse" in arguments else None
    try:
        for line in check(wheel_in(), project.version(), house):
            print(f"install: {line}")
    except ReleaseError as error:
        print(f"install: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
