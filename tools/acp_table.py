"""The table of what Punie does of ACP, from the rows of tests/requirements.toml and the tests that wear them.

`python tools/acp_table.py` prints it; with `--write` it goes into docs/acp.md. A test says whether that is up to date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tools.requirements_report import ROOT, Requirement, load_manifest, worn

PAGE = Path("docs/acp.md")
PREFIX = "ACP "
_BETWEEN = re.compile(r"(?<=<!-- table -->\n).*(?=<!-- end of table -->)", re.DOTALL)


def table(root: Path = ROOT) -> str:
    """The table in Markdown, in the order of the file."""
    manifest, marks = load_manifest(root), worn(root)
    rows = (row for row in manifest.rows.values() if row.id.startswith(PREFIX))
    lines = (
        f"| `{row.id.removeprefix(PREFIX)}` | {_said(row)} | {_shown(sorted(marks.get(row.id, ())))} |" for row in rows
    )
    return "\n".join(("| ACP | Punie | shown by |", "|---|---|---|", *lines, ""))


def page(root: Path = ROOT) -> str:
    """The page as it should be."""
    text = (root / PAGE).read_text(encoding="utf-8")
    return _BETWEEN.sub(lambda _: table(root), text)


def _said(row: Requirement) -> str:
    return row.says if row.not_applicable is None else f"not offered: {row.not_applicable}"


def _shown(files: list[str]) -> str:
    return ", ".join(f"[{Path(file).stem}](../tests/{file})" for file in files)


def main() -> int:
    """Print it, or write it."""
    if sys.argv[1:] == ["--write"]:
        (ROOT / PAGE).write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
