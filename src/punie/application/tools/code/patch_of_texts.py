"""Changes of whole texts as one patch for `edit_file`."""

from __future__ import annotations

import difflib

from punie.application.tools.files.patch_reading import lines_of, parse_patch
from punie.application.tools.files.patching import in_its_line_ends
from punie.domain.errors import ToolFailedError
from punie.ports.code import TextChanges

_NO_END = "\\ No newline at end of file\n"


def patch_of(changes: TextChanges) -> str:
    """The changes as one patch. Raises `ToolFailedError` for a text that comes out otherwise when it is applied."""
    patch = "".join(_patch(path, before, after) for path, (before, after) in sorted(changes.items()))
    files = {file.path: file.hunks for file in parse_patch(patch)}
    for path, (before, after) in changes.items():
        if path not in files or in_its_line_ends(before, files[path]) != after:
            raise ToolFailedError(f"The change of {path} cannot be written as a patch, so nothing was changed.")
    return patch


def _patch(path: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(lines_of(before), lines_of(after), path, path)
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_END}" for line in lines)
