"""The change of a file in ACP v2: what became of which path, and a patch that shows it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from punie.domain.values.content import Diff

DIFF_LINES = 20_000
"""difflib takes time that grows with the square in bad cases; of larger texts the whole is shown as replaced."""

_NO_NEWLINE = "\\ No newline at end of file"
_ESCAPES = {"\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r"} | {
    '"': '\\"',
    "\\": "\\\\",
}


def encode_diff(diff: Diff) -> dict[str, object]:
    """One file's change, as the content of a call."""
    operation = "add" if diff.old_text is None else "modify"
    return {
        "type": "diff",
        "changes": [{"operation": operation, "path": diff.path, "fileType": "text"}],
        "patch": {"format": "git_patch", "text": git_patch(diff)},
    }


def git_patch(diff: Diff) -> str:
    """The change as Git shows one, with absolute paths and no prefixes."""
    path, new = _quoted(diff.path), _lines(diff.new_text)
    old = [] if diff.old_text is None else _lines(diff.old_text)
    head = [f"diff --git {path} {path}"]
    if diff.old_text is None:
        head.append("new file mode 100644")
    body = list(_hunks(old, new))
    if body:
        head += ["--- /dev/null" if diff.old_text is None else f"--- {path}", f"+++ {path}"]
    return "\n".join((*head, *body, ""))


def _hunks(old: list[str], new: list[str]) -> Iterator[str]:
    if len(old) + len(new) > DIFF_LINES:
        yield f"@@ -{_range(old)} +{_range(new)} @@"
        yield from _marked("-", old)
        yield from _marked("+", new)
        return
    lines = difflib.unified_diff(old, new, lineterm="\n")
    for line in (line for number, line in enumerate(lines) if number > 1):
        if line.startswith("@@"):
            yield line.rstrip("\n")
        else:
            yield from _marked(line[0], [line[1:]])


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield _NO_NEWLINE


def _range(lines: list[str]) -> str:
    return f"1,{len(lines)}" if lines else "0,0"


def _lines(text: str) -> list[str]:
    """Its lines as Git counts them, with their ends: nothing but a newline ends one."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _quoted(path: str) -> str:
    """A path as Git writes it: in quotes, with escapes, where it holds what is not plain."""
    if all(char >= " " and char not in '"\\\x7f' and char.isascii() for char in path):
        return path
    escaped = "".join(
        _ESCAPES.get(char) or (char if " " <= char < "\x7f" else "".join(f"\\{byte:03o}" for byte in char.encode()))
        for char in path
    )
    return f'"{escaped}"'
