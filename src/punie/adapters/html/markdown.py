"""A model's Markdown as HTML in which only Punie's own elements can stand.

The text is read by markdown-it-py with raw HTML off, and written from its tokens by a table of elements: a token that
the table does not know has no element. Links and images become words with their address beside them, so that a page
leads nowhere and loads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from attrs import define, field
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from punie.domain.values.display import display_output

NESTING = 20
"""Lists in lists and quotes in quotes beyond this depth are read as text."""

TEXT_TOKENS = 6_000
"""A text of more tokens is shown as it was written: an answer of 12,000 characters has a few hundred."""

PAGE_TOKENS = 400_000
"""The tokens of all texts of one page; the texts behind them are shown as they were written."""

_ELEMENTS: Mapping[str, str] = {
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "blockquote": "blockquote",
    "table": "table",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
    "em": "em",
    "strong": "strong",
    "s": "s",
}
_HEADINGS = {"h1": "h4", "h2": "h5"}
"""The page's own headings are of the first three levels; those of a text come below."""

_BREAKS = re.compile("(?=</(?:p|li|h[4-6]|t[dh]|pre)>)|<br>")
"""Places at which one word ends where a browser begins a new line or cell."""

_SIDES = {"text-align:right": "right", "text-align:center": "center"}


@define
class Prose:
    """The Markdown of one page; lives as long as the page is written, because all of its texts share one bound."""

    room: int = PAGE_TOKENS
    _parser: MarkdownIt = field(init=False)

    def __attrs_post_init__(self) -> None:
        parser = MarkdownIt("commonmark", {"html": False, "maxNesting": NESTING})
        self._parser = parser.enable(["table", "strikethrough"])

    def shown(self, text: str) -> Markup:
        """The text as HTML, or, where there is no room for it, as it was written."""
        if self.room <= 0:
            return as_written(text)
        tokens = self._parser.parse(text)
        count = len(tokens) + sum(len(token.children or ()) for token in tokens)
        self.room -= count
        if count > TEXT_TOKENS:
            return as_written(text)
        return Markup("").join((Markup('<div class="prose">'), *_written(tokens), Markup("</div>")))


def gist(html: Markup) -> str:
    """The words of a text that was rendered, on one line."""
    return Markup(_BREAKS.sub(" ", html)).striptags()  # noqa: S704 - our own HTML; its words are escaped again


def as_written(text: str) -> Markup:
    """The text itself; a browser drops the first line end of `pre`, so there is one more."""
    return Markup('<pre class="text prose">\n{}</pre>').format(display_output(text))


def _written(tokens: Sequence[Token]) -> Iterator[Markup]:
    """The pieces of HTML, in which every element is closed and every text is escaped."""
    addresses: list[str] = []
    for place, token in enumerate(tokens):
        name, _, edge = token.type.rpartition("_")
        if token.children is not None and token.type == "inline":
            yield from _written(token.children)
        elif token.type == "link_open":
            addresses.append(str(token.attrs.get("href", "")))
        elif token.type == "link_close":
            address = addresses.pop() if addresses else ""
            if address != tokens[place - 1].content:
                yield _address(address)
        elif edge in {"open", "close"} and not token.hidden:
            yield _edge(name, token)
        else:
            yield _leaf(token)


def _edge(name: str, token: Token) -> Markup:
    """The beginning or the end of an element."""
    element = _HEADINGS.get(token.tag, "h6") if name == "heading" else _ELEMENTS.get(name)
    if element is None:
        return Markup("")
    if token.nesting < 0:
        end = Markup("</{}>").format(element)
        return end + Markup("</div>") if element == "table" else end
    side = _SIDES.get(str(token.attrs.get("style", "")))
    first = token.attrs.get("start")
    if element == "table":
        return Markup('<div class="wide" role="group" aria-label="Table" tabindex="0"><table>')
    if side is not None:
        return Markup('<{} class="{}">').format(element, side)
    return Markup('<ol start="{}">').format(first) if isinstance(first, int) else Markup("<{}>").format(element)


def _leaf(token: Token) -> Markup:
    """A piece without content of its own elements."""
    match token.type:
        case "fence" | "code_block":
            return Markup('<pre class="text code">\n{}</pre>').format(_safe(token.content.removesuffix("\n")))
        case "code_inline":
            return Markup("<code>{}</code>").format(_safe(token.content))
        case "image":
            alt = Markup('<span class="image">[image{}]</span>').format(
                _safe(f": {token.content}" * bool(token.content))
            )
            return alt + _address(str(token.attrs.get("src", "")))
        case "hr":
            return Markup("<hr>")
        case "hardbreak":
            return Markup("<br>")
        case "softbreak":
            return Markup("\n")
        case _:
            return escape(_safe(token.content))


def _address(address: str) -> Markup:
    """The address of a link, to be read; a click does nothing."""
    return Markup(' <span class="address">({})</span>').format(_safe(address)) if address else Markup("")


def _safe(text: str) -> str:
    """Display-safe after the parser too, which decodes entities."""
    return display_output(text)
