"""Resolve pyproject.toml into requirements/*.txt: exact versions, every hash, one set for all platforms.

The resolver (uv) is itself locked in requirements/lock.txt and lives in a throw-away virtual environment. The written
files name no index and carry no header, so that they say what is installed and not where somebody got it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
OPTIONS = ("--generate-hashes", "--universal", "--no-header", "--no-annotate", "--python-version", "3.11", "--quiet")
TARGETS = {
    "runtime.txt": ("pyproject.toml",),
    "dev.txt": ("pyproject.toml", "--group", "dev"),
    "lock.txt": ("requirements/lock.in",),
}


def main(*, upgrade: bool) -> int:
    """Write the three files; without `upgrade` versions that still fit stay as they are."""
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True)
        bin_dir = Path(scratch) / ("Scripts" if sys.platform == "win32" else "bin")
        pip = [str(bin_dir / "python"), "-m", "pip", "install", "--quiet", "--require-hashes"]
        subprocess.run([*pip, "-r", str(REQUIREMENTS / "lock.txt")], check=True, cwd=ROOT)
        for name, source in TARGETS.items():
            extra = ["--upgrade"] if upgrade else []
            output = ["--output-file", f"requirements/{name}"]
            subprocess.run(
                [str(bin_dir / "uv"), "pip", "compile", *source, *OPTIONS, *extra, *output], check=True, cwd=ROOT
            )
            print(f"lock: requirements/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(upgrade="--upgrade" in sys.argv[1:]))
