"""What a line does, in the words of a row's examples: `python -m tests.shellsight.told LINE...` prints them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from shellsight.report import PathEffect, PathUse
from tests.shellsight.shell_lines import report

_DONE = {
    PathEffect.LOOK: "looks at",
    PathEffect.READ: "reads",
    PathEffect.WRITE: "writes",
    PathEffect.DELETE: "deletes",
}


def told(line: str) -> str:
    """The line's standing, what it does to which paths, and its other effects, for a project in `/repo`."""
    found = report(line)
    effects = sorted({effect.name.lower().replace("_", " ") for part in found.parts for effect in part.effects})
    words = [*dict.fromkeys(_place(use) for use in found.paths), *effects]
    return found.standing.name.lower() + (f": {', '.join(words)}" if words else "")


def _place(use: PathUse) -> str:
    """`reads src/**`: paths are relative to the project, `/**` is everything below."""
    path = "." if use.path == "/repo" else use.path.removeprefix("/repo/")
    return f"{_DONE[use.effect]} {path.rstrip('/') + '/**' if use.below else path}"


def main(lines: Sequence[str]) -> int:
    """Write an example for each line to stdout."""
    for line in lines:
        sys.stdout.write(f"{line} => {told(line)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
