"""Calls on the screen of `punie chat`: one line each with the beginning of what they show, all of it on demand."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterator

from attrs import define, field

from punie.adapters.console.chat.painting import Paint
from punie.adapters.console.questions import diff_lines
from punie.domain.tools.tool import ToolKind
from punie.domain.values.content import Diff, EmbeddedResource, Image, ResourceLink, ResultContent, Text
from punie.domain.values.display import display_exact, display_output

FOLDED_LINES = 5
"""Lines of a command's output, and of a failure, that are shown unasked."""

FOLDED_DIFF_LINES = 14
KEPT_CARDS = 200
"""Ended calls whose output can be opened."""

PRINTED_LINES = 500
"""A call that shows more than this is read in a pager, so that the conversation does not scroll away."""

TITLE_CHARS = 300


@define(eq=False)
class Card:
    """A call on the screen; `number` is 0 until it ended, and `denied` the reason where it was denied."""

    title: str
    kind: ToolKind
    started_s: float
    quiet: bool
    cwd: str
    running: bool = False
    number: int = 0
    content: tuple[ResultContent, ...] = ()
    denied: str = ""

    def changes(self) -> list[str]:
        """The changes that the call shows, as lines of differences, safe for a terminal."""
        diffs = [part for part in self.content if isinstance(part, Diff)]
        return [line for diff in diffs for line in diff_lines(diff, self.cwd, sys.maxsize)]

    def lines(self) -> list[str]:
        """The texts of the call, line by line, safe for a terminal."""
        texts = display_output("\n".join(filter(None, map(_text, self.content)))).rstrip("\n")
        return texts.split("\n") if texts else []

    @property
    def long(self) -> bool:
        """Whether all of it is too much for the conversation."""
        return len(self.changes()) + len(self.lines()) > PRINTED_LINES

    def whole(self) -> str:
        """All of it, as text without colours."""
        return "".join(
            f"{line}\n" for line in (f"[{self.number}] {display_exact(self.title)}", *self.changes(), *self.lines())
        )


@define(eq=False)
class EndedCards:
    """The latest calls that ended, by number from 1; lives as long as the session."""

    _cards: OrderedDict[int, Card] = field(factory=OrderedDict[int, Card], init=False)
    _count: int = field(default=0, init=False)

    def add(self, card: Card) -> None:
        """Give the call the next number and keep it."""
        self._count = card.number = self._count + 1
        self._cards[card.number] = card
        if len(self._cards) > KEPT_CARDS:
            self._cards.popitem(last=False)

    def card(self, number: int | None) -> Card | None:
        """The call of that number, by default the last one; None where it is not kept."""
        return self._cards.get(next(reversed(self._cards), 0) if number is None else number)


def folded(card: Card, paint: Paint, *, good: bool, shown: bool) -> Iterator[str]:
    """The beginning of what a call shows: a refusal, the changes unless they were `shown`, the end of an output."""
    if card.denied:
        yield paint.lines([f"denied: {card.denied}"], "red", indent=2)
        return
    changes = card.changes()
    if changes and not shown:
        yield paint.changes(changes[:FOLDED_DIFF_LINES])
        yield from _more(card, paint, len(changes) - FOLDED_DIFF_LINES)
    lines = card.lines()
    if lines and (card.kind is ToolKind.EXECUTE or not good):
        yield from _more(card, paint, len(lines) - FOLDED_LINES)
        yield paint.lines([line[:TITLE_CHARS] for line in lines[-FOLDED_LINES:]], "dim", indent=2)


def opened(card: Card, paint: Paint) -> str:
    """Everything that a call shows."""
    changes, lines = card.changes(), card.lines()
    shown = paint.line(f"[{card.number}] {card.title}", "bold")
    return shown + (paint.changes(changes) if changes else "") + (paint.lines(lines, indent=2) if lines else "")


def _more(card: Card, paint: Paint, lines: int) -> Iterator[str]:
    if lines > 0:
        yield paint.line(f"  {lines:,} more lines: /open {card.number}, or Ctrl-O", "dim")


def _text(part: ResultContent) -> str:
    match part:
        case Text(text):
            return text
        case EmbeddedResource(uri, text):
            return text or uri
        case ResourceLink(uri):
            return uri
        case Image(_, mime_type):
            return f"[a picture, {mime_type}]"
        case _:
            return ""
