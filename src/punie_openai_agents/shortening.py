"""A history made shorter: how large it is, where it may be cut, and what stands in the place of what was cut off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from attrs import field, frozen

from punie.api import (
    ARGUMENTS_CHARS,
    CHARS_PER_TOKEN,
    OPENING,
    PICTURE_TOKENS,
    RESULT_CHARS,
    TAKEN_IN,
    told_summary,
    within,
)
from punie_openai_agents.items import Group, Item, Told, closed, flat, said_item, user_item

_SHOWN = frozenset({"input_image", "input_file"})


@frozen
class Counted:
    """How many tokens the provider counted of a history and the first `groups` of the turn after it."""

    tokens: int
    groups: int


@frozen
class History:
    """The turns that are over. `tokens` is what the provider counted of them, 0 where it did not."""

    turns: tuple[Told, ...] = field(default=(), converter=tuple[Told, ...])
    tokens: int = 0


@frozen
class Running:
    """A turn at work, after the history that it goes on from; `told` is what it added so far."""

    history: History
    told: Told
    counted: Counted | None = None

    @property
    def tokens(self) -> int:
        """How much of the context it takes: as the provider counted last, and what came since by its length.

        The count holds what goes along with every request, instructions and tools; the estimate does not.
        """
        if self.counted is not None:
            return self.counted.tokens + length_of(flat([self.told[self.counted.groups :]]))
        return (self.history.tokens or length_of(flat(self.history.turns))) + length_of(flat([self.told]))

    @property
    def over(self) -> History:
        """The history with this turn, as the next one goes on from it."""
        counted = 0 if self.counted is None else self.tokens
        return History((*self.history.turns, closed(self.told)), counted)


@frozen
class Cut:
    """Where a history falls apart: `old` is summarised; the turns of `kept` stay, and `running` of the one that runs.

    `prompt` is the running turn's, where that is cut: it stays, behind the summary.
    """

    old: Sequence[Told]
    kept: Sequence[Told] = ()
    running: Told = field(factory=list[Group])
    prompt: Group = field(factory=list[Item])


def length_of(items: Iterable[Item]) -> int:
    """The estimate in tokens, by the items' length alone."""
    return sum(_size(item) for item in items)


def cut_running(now: Running, keep_tokens: int) -> Cut | None:
    """Cut before a request of a running turn, so that the latest turns that fit are kept; None where nothing is gained.

    Where not even the running turn fits, it is cut as well, between two answers of the model; its prompt stays.
    """
    turns, told = now.history.turns, now.told
    size = length_of(flat([told]))
    if size <= keep_tokens or len(told) == 1:  # a prompt alone must stay, however long it is
        first = len(turns) - _fitting([flat([turn]) for turn in turns], keep_tokens - size)
        return _gaining(Cut(turns[:first], turns[first:], told))
    first = len(told) - max(_fitting(told[1:], keep_tokens), 1)
    before = [told[:first]] if first > 1 else []
    return _gaining(Cut([*turns, *before], (), told[first:], told[0]))


def cut_resting(turns: Sequence[Told], keep_tokens: int) -> Cut | None:
    """Cut between two turns: the last is kept where it fits and is not all there is; None where nothing is gained."""
    real = [turn for turn in turns if not _is_summary(turn)]
    keeps = len(real) > 1 and length_of(flat(real[-1:])) <= keep_tokens
    last = len(turns) - 1 if keeps else len(turns)
    return _gaining(Cut(turns[:last], turns[last:]))


def shortened(cut: Cut, summary: str) -> Running:
    """What takes the place of the history that was cut."""
    taken_in: Told = [[user_item(told_summary(summary))], [said_item(TAKEN_IN)]]
    running = [cut.prompt, *cut.running] if cut.prompt else cut.running
    return Running(History((taken_in, *cut.kept)), running)


def written_out(turns: Iterable[Told], limit_chars: int) -> str:
    """The turns as text for whoever summarises them; of one that is too long the middle is left out."""
    return within("\n\n".join(line for item in flat(turns) if (line := _line(item))), limit_chars)


def _gaining(cut: Cut) -> Cut | None:
    return cut if any(not _is_summary(turn) for turn in cut.old) else None


def _fitting(parts: Sequence[Group], keep_tokens: int) -> int:
    """How many of the last parts fit."""
    count = 0
    for part in reversed(parts):
        keep_tokens -= length_of(part)
        if keep_tokens < 0:
            break
        count += 1
    return count


def _is_summary(turn: Told) -> bool:
    return bool(turn) and _text(turn[0][0]).startswith(OPENING)


def _size(item: Item) -> int:
    written = sum(len(value) for key in ("name", "arguments", "output") if isinstance(value := item.get(key), str))
    shown = sum(part.get("type") in _SHOWN for part in _parts(item))
    return int((written + len(_text(item))) / CHARS_PER_TOKEN) + shown * PICTURE_TOKENS + 4


def _line(item: Item) -> str:
    match item.get("type"):
        case "function_call":
            return f"CALL {item['name']}: {within(item['arguments'], ARGUMENTS_CHARS)}"
        case "function_call_output":
            return f"RESULT: {within(str(item.get('output', '')), RESULT_CHARS)}"
        case "reasoning":
            return ""  # thoughts are the model's own
        case _:
            said = _text(item)
            return f"{'USER' if item.get('role') == 'user' else 'AGENT'}: {said}" if said else ""


def _text(item: Item) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text") or "[something that is no text]") for part in _parts(item))


def _parts(item: Item) -> list[Item]:
    content = item.get("content")
    return cast("list[Item]", content) if isinstance(content, list) else []
