"""Our extras resolved all together, for every platform: what a user may ask for can be had, and the audit knows of it.

The providers' extras are in no lock, for no test needs their packages; what the default installation brings stays at
the locked versions.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tools.release import project
from tools.release.licences import locked
from tools.release.project import ROOT, ReleaseError

OPTIONS = ("--all-extras", "--universal", "--no-header", "--no-annotate", "--python-version", "3.11", "--quiet")


def resolved(root: Path = ROOT) -> dict[str, str]:
    """Name and version of all that the default installation and every extra bring. Raises `ReleaseError`."""
    with tempfile.TemporaryDirectory(prefix="punie-extras-") as scratch:
        pins = Path(scratch) / "pins.txt"
        command = project.tool("uv", "pip", "compile", "pyproject.toml", *OPTIONS)
        command += ["--constraint", "requirements/runtime.txt", "--output-file", str(pins)]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ReleaseError(f"the extras do not resolve together:\n{done.stderr.strip()[-1500:]}")
        return locked([pins])


def main() -> int:
    """Resolve them, and say how much there is."""
    try:
        found = resolved()
    except ReleaseError as error:
        print(f"extras: {error}", file=sys.stderr)
        return 1
    print(f"extras: all of them together resolve, to {len(found)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
