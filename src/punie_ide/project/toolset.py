"""The toolset of the demo's IDE, in the order it is offered."""

from __future__ import annotations

from punie_ide.project.problems import FIND_PROBLEMS
from punie_ide.project.renaming import RENAME_SYMBOL
from punie_ide.project.symbols import LIST_SYMBOLS, OPEN_FILE, SEARCH_PROJECT
from punie_ide.project.testing import RUN_TESTS
from punie_ide.tools import IdeTool

PROJECT_TOOLS: tuple[IdeTool, ...] = (
    FIND_PROBLEMS,
    SEARCH_PROJECT,
    LIST_SYMBOLS,
    OPEN_FILE,
    RENAME_SYMBOL,
    RUN_TESTS,
)
"""Six tools over one Python project; they work on the files and terminals of whatever IDE offers them."""
