"""Commands that may be granted wider than word by word: for any files below the directory, to one known effect.

A pattern covers a command only if each of its words was looked at here, and each file it names was followed to where
it leads. What is left out on purpose: options that name a program, a configuration or an output, and programs that run
the project's own code or load plug-ins. Programs that only look need no pattern: they run without a question.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from attrs import frozen

from punie.domain.values.paths import is_inside
from shellsight.report import CommandPart
from shellsight.secret_names import is_secret

_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]*")
"""Letters that no shell reads as anything but themselves, and no program as an option or a list of arguments."""


@frozen
class SafePattern:
    """A command of `prefix`, then only `flags` and files; `effect` says all that it may do with those."""

    prefix: tuple[str, ...]
    flags: frozenset[str]
    effect: str

    @property
    def words(self) -> str:
        """How a person reads it."""
        return f"{' '.join(self.prefix)} for anything below it, which it may {self.effect}"

    def covers(self, part: CommandPart, directory: str, roots: tuple[str, ...]) -> bool:
        """Whether it covers that command, its paths located, run in that directory."""
        if part.argv[: len(self.prefix)] != self.prefix:
            return False
        words = part.argv[len(self.prefix) :]
        files = [word for word in words if not word.startswith("-")]
        known = {use.path for use in part.paths if use.where is not None and use.where.inside}
        flags_known = self.flags.issuperset(word for word in words if word.startswith("-"))
        return flags_known and all(_plain_file(word, directory, roots, known) for word in files)


_RUFF = frozenset({"-q", "--quiet", "-v", "--verbose", "--no-cache", "--isolated", "--diff"})

SAFE_PATTERNS: tuple[SafePattern, ...] = (
    SafePattern(("ruff", "check"), _RUFF | {"--fix", "--no-fix", "--statistics", "--exit-zero"}, "fix"),
    SafePattern(("ruff", "format"), _RUFF | {"--check"}, "format"),
    SafePattern(("mkdir",), frozenset({"-p", "-v"}), "make"),
)


def safe_pattern(part: CommandPart, directory: str, roots: Sequence[str]) -> SafePattern | None:
    """The pattern that covers the command, run in that directory; None where it may be granted as it stands only."""
    return next((pattern for pattern in SAFE_PATTERNS if pattern.covers(part, directory, tuple(roots))), None)


def _plain_file(word: str, directory: str, roots: tuple[str, ...], known: set[str]) -> bool:
    """Whether the word names something below the directory and the roots, by its letters and where they lead."""
    if _PLAIN.fullmatch(word) is None:
        return False
    path = posixpath.normpath(posixpath.join(directory, word))
    return path in known and is_inside(path, (directory,)) and is_inside(path, roots) and not is_secret(path)
