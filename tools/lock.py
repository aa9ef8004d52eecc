"""Resolve our dependencies and the tests' servers into lock files: exact versions, every hash, all platforms.

The resolver (uv) is itself locked in requirements/lock.txt and lives in a throw-away virtual environment. The written
files name no index and carry no header, so that they say what is installed and not where somebody got it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
OPTIONS = ("--generate-hashes", "--universal", "--no-header", "--no-annotate", "--quiet")
OLDEST = "3.11"
FORWARDED = "pydantic-ai-slim["
"""An extra that only asks for one of Pydantic AI's own: a provider's package, which nothing here imports by itself."""


def tested_extras() -> list[str]:
    """The options for the extras that tests need: all but the providers', together a cloud's worth of SDKs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    ours = [name for name, needs in extras.items() if not all(need.startswith(FORWARDED) for need in needs)]
    return [f"--extra={name}" for name in ours]


TARGETS = {
    "requirements/runtime.txt": ("pyproject.toml",),
    "requirements/dev.txt": ("pyproject.toml", *tested_extras(), "--group", "dev"),
    "requirements/release.txt": ("requirements/release.in", "--constraint", "requirements/dev.txt"),
    "requirements/lock.txt": ("requirements/lock.in",),
    "tests/servers/requirements.txt": ("tests/servers/requirements.in",),
    "tests/eval/requirements.txt": ("tests/eval/requirements.in",),
    "tests/clients/requirements.txt": ("tests/clients/requirements.in",),
}
NEWER = {"tests/clients/requirements.txt": "3.14"}
"""The oldest Python of a target that does not install on `OLDEST`."""


def main(*, upgrade: bool) -> int:
    """Write the files; without `upgrade` versions that still fit stay as they are."""
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True)
        bin_dir = Path(scratch) / ("Scripts" if sys.platform == "win32" else "bin")
        pip = [str(bin_dir / "python"), "-m", "pip", "install", "--quiet", "--require-hashes"]
        subprocess.run([*pip, "-r", str(REQUIREMENTS / "lock.txt")], check=True, cwd=ROOT)
        for name, source in TARGETS.items():
            extra = ["--python-version", NEWER.get(name, OLDEST), *(["--upgrade"] if upgrade else [])]
            subprocess.run(
                [str(bin_dir / "uv"), "pip", "compile", *source, *OPTIONS, *extra, "--output-file", name],
                check=True,
                cwd=ROOT,
            )
            print(f"lock: {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(upgrade="--upgrade" in sys.argv[1:]))
