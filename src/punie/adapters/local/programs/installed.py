"""What is installed on this machine."""

from __future__ import annotations

import importlib.util
import shutil


def is_installed(dependency: str) -> bool:
    """Whether a program is on PATH, or, for `python:MODULE`, whether its top package can be imported here.

    Nothing is run or imported: a submodule is not looked for, since that would import its parents.
    """
    module = dependency.removeprefix("python:")
    if module == dependency:
        return shutil.which(dependency) is not None
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ValueError, ImportError):
        return False
