"""Run import-linter on this tree with the tools folder importable, as `make lint` and the architecture tests do.

`python tools/lint_imports.py [ROOT]`: ROOT (this repository by default) holds `.importlinter`, `src/punie` and `tools`.
Exit code 0 when every contract is kept.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from importlinter import cli


def main(root: Path) -> int:
    """Lint the tree under `root`; the tree itself wins over an installed punie of the same name."""
    os.chdir(root)
    sys.path[:0] = [str(root / "src"), str(root)]
    return cli.lint_imports(config_filename=".importlinter", no_cache=True, no_logo=True)


if __name__ == "__main__":
    here = Path(__file__).resolve().parent.parent
    sys.exit(main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else here))
