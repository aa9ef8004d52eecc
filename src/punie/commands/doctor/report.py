"""What the doctor found, in lines for a person and as JSON for programs (INTERFACES.md section 1)."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence

from attrs import frozen

from punie.domain.values.display import one_line

LONGEST = 2_000
_LABELS = {True: "ok", False: "FAIL"}
_COLOURS = {True: "32", False: "31"}
_INDENT = " " * 6


@frozen
class Check:
    """One thing that was looked at. `fix` says what to do, and is there whenever it is not ok.

    Something optional that is missing is ok, and `detail` says so.
    """

    name: str
    ok: bool
    detail: str
    fix: str | None = None


@frozen
class Page:
    """How checks are shown: on a terminal wrapped to its `width` (None: each a single line), and in colour or not."""

    width: int | None = None
    colour: bool = False

    def lines(self, check: Check) -> str:
        """One line, and one with the fix where the check failed."""
        label = _LABELS[check.ok].ljust(len(_INDENT) - 2)
        if self.colour:
            label = f"\x1b[{_COLOURS[check.ok]}m{label}\x1b[0m"
        said = self._wrapped(f"{label}  ", f"{one_line(check.name)}: {one_line(check.detail, LONGEST)}")
        if check.ok or check.fix is None:
            return said
        return said + self._wrapped(_INDENT, f"fix: {one_line(check.fix, LONGEST)}")

    def _wrapped(self, head: str, text: str) -> str:
        if self.width is None:
            return f"{head}{text}\n"
        lines = textwrap.wrap(text, max(self.width - len(_INDENT), 20), break_on_hyphens=False)
        return "".join(f"{_INDENT if number else head}{line}\n" for number, line in enumerate(lines))


def summary(checks: Sequence[Check]) -> str:
    """The last line."""
    failed = [check.name for check in checks if not check.ok]
    if not failed:
        return f"All {len(checks)} checks are well.\n"
    return f"{len(failed)} of {len(checks)} checks failed: {', '.join(one_line(name) for name in failed)}.\n"


def as_json(checks: Sequence[Check]) -> str:
    """All of it on one line."""
    rows = [{"name": check.name, "ok": check.ok, "detail": check.detail, "fix": check.fix} for check in checks]
    return json.dumps({"ok": all(check.ok for check in checks), "checks": rows})
