# ruff: noqa: INP001 - Sphinx runs this file; the folder is no package
"""How the pages become a site (`make docs`): Sphinx reads the same Markdown that code hosting sites show."""

from __future__ import annotations

import html
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

project_copyright = "Punie contributors"
html_theme = "furo"
html_title = "Punie"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]

myst_heading_anchors = 4
smartquotes = False  # two dashes and straight quotes are what a person types and what Punie says

_HERE = Path(__file__).resolve().parent
_LINK = re.compile(r"\[(?P<text>[^\[\]]+)\]\((?P<target>\.\.?/[^()\s#]*)(?:#[^()\s]*)?\)")


def _leave_the_code_at_home(_app: Sphinx, page: str, source: list[str]) -> None:
    """Where a page leads to a file of the repository that is no page, the site shows the words alone."""

    def shown(link: re.Match[str]) -> str:
        goal = (_HERE / page).parent.joinpath(link["target"]).resolve()
        is_page = goal.is_relative_to(_HERE) and goal.suffix == ".md"
        return link[0] if is_page else link["text"]

    source[0] = _LINK.sub(shown, source[0])


_TABLE = re.compile(r"<table (?P<rest>.*?)</table>", re.DOTALL)
_HEAD = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
_CELL = re.compile(r"<td\b[^>]*>(?P<body>.*?)</td>", re.DOTALL)
_ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
_PICTURE = re.compile(r"<img [^>]*src=\"[^\"]*_images/(?P<name>[\w.-]+\.svg)\"[^>]*>")
STACKED = 2
"""Tables with so many columns become blocks on a narrow screen (_static/pages.css)."""
_MANY, _LONG = 4, 12_000
"""Tables with more columns and more HTML than that are blocks on every screen: the settings."""


def _labelled(table: re.Match[str]) -> str:
    """A table whose cells know the name of their column."""
    names = [html.unescape(re.sub(r"<[^>]+>", "", cell)).strip() for cell in _HEAD.findall(table[0])]
    if len(names) < STACKED:
        return table[0]

    def row(found: re.Match[str]) -> str:
        left = iter(names)
        return _CELL.sub(lambda cell: _named(cell, next(left, "")), found[0])

    look = "stacked long " if len(names) > _MANY and len(table[0]) > _LONG else "stacked "
    return _ROW.sub(row, table[0]).replace('class="', f'class="{look}', 1)


def _named(cell: re.Match[str], name: str) -> str:
    """A cell with its column's name; an empty cell has none and is not shown on a narrow screen."""
    said = re.sub(r"<[^>]+>", "", cell["body"]).strip()
    return cell[0].replace("<td", f'<td data-label="{html.escape(name)}"' if said else '<td data-empty=""', 1)


def _inlined(picture: re.Match[str]) -> str:
    """A picture as part of its page, so that its text can be selected and found."""
    file = _HERE / "pictures" / picture["name"]
    return file.read_text("utf-8").replace("<svg ", '<svg class="picture" ', 1) if file.is_file() else picture[0]


def _for_any_screen(_app: Sphinx, _page: str, _template: str, context: dict[str, object], _tree: object) -> None:
    """Tables for phones, pictures as text."""
    if isinstance(body := context.get("body"), str):
        context["body"] = _PICTURE.sub(_inlined, _TABLE.sub(_labelled, body))


def setup(app: Sphinx) -> None:
    """Sphinx calls this when it starts."""
    app.connect("source-read", _leave_the_code_at_home)
    app.connect("html-page-context", _for_any_screen)
