# ruff: noqa: INP001 - Sphinx runs this file; the folder is no package
"""How the pages become a site (`make docs`): Sphinx reads the same Markdown that code hosting sites show."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

import punie

project = "Punie"
author = "Punie contributors"
release = punie.__version__
extensions = ["myst_parser"]
nitpicky = True
suppress_warnings = ["toc.not_included"]  # decisions are reached from their own page, not from the menu

html_theme = "furo"
html_title = "Punie"
html_copy_source = False
html_show_sphinx = False

myst_heading_anchors = 4

_HERE = Path(__file__).resolve().parent
_LINK = re.compile(r"\[(?P<text>[^\[\]]+)\]\((?P<target>\.\.?/[^()\s#]*)(?:#[^()\s]*)?\)")


def _leave_the_code_at_home(_app: Sphinx, page: str, source: list[str]) -> None:
    """Where a page leads to a file of the repository that is no page, the site shows the words alone."""

    def shown(link: re.Match[str]) -> str:
        goal = (_HERE / page).parent.joinpath(link["target"]).resolve()
        is_page = goal.is_relative_to(_HERE) and goal.suffix == ".md"
        return link[0] if is_page else link["text"]

    source[0] = _LINK.sub(shown, source[0])


def setup(app: Sphinx) -> None:
    """Sphinx calls this when it starts."""
    app.connect("source-read", _leave_the_code_at_home)
