"""The person at the terminal who sets up a model: asked one question at a time, and again where an answer is none."""

from __future__ import annotations

import getpass
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

from attrs import frozen

from punie.commands.setup.providers import AnswerError, Offer, checked_address, checked_key, model_name
from punie.domain.values.display import display_safe

T = TypeVar("T")

TRIES = 3


@frozen
class Person:
    """`line` asks and gives a line, `hidden` does so and shows nothing of it; both raise `EOFError` at the end."""

    line: Callable[[str], str]
    hidden: Callable[[str], str]
    say: Callable[[str], None]

    def offer(self, offers: Sequence[Offer]) -> Offer:
        """Which provider."""
        for number, offer in enumerate(offers, 1):
            self.say(f"  {number}  {offer.label}\n")

        def chosen(text: str) -> Offer:
            number = int(text) if text.isdecimal() and len(text) < len("1000") else 0
            if 1 <= number <= len(offers):
                return offers[number - 1]
            named = [offer for offer in offers if text in {offer.provider, offer.label}]
            if named:
                return named[0]
            raise AnswerError(f"choose a number from 1 to {len(offers)}")

        return self._until(lambda: chosen(self._or_default("Provider", "1")))

    def address(self, default: str) -> str:
        """Where the server is."""
        return self._until(lambda: checked_address(self._or_default("Address", default)))

    def key(self, label: str, instead: str | None) -> str | None:
        """The key; None where an empty answer means to do without one, or with the one that `instead` names."""
        hint = f"; Enter: {instead}" if instead else ""

        def asked() -> str | None:
            text = self.hidden(f"Key for {label} (not shown{hint}): ")
            return None if instead and not text.strip() else checked_key(text)

        return self._until(asked)

    def model(self, provider: str, default: str, listed: Callable[[], Sequence[str]]) -> str:
        """The model's whole name; a question mark shows what the provider lists."""

        def asked() -> str:
            text = self._or_default("Model (? lists them)", default)
            if text.strip() == "?":
                names = listed()
                self.say(
                    "".join(f"  {display_safe(name)}\n" for name in names) or "  It has no list that can be read.\n"
                )
                text = self._or_default("Model", default)
            return model_name(provider, text)

        return self._until(asked)

    def agrees(self, question: str) -> bool:
        """Yes or no; anything but a yes is a no."""
        return self.line(f"{question} [y/N] ").strip().lower() in {"y", "yes"}

    def _or_default(self, question: str, default: str) -> str:
        hint = f" [{default}]" if default else ""
        return self.line(f"{question}{hint}: ").strip() or default

    def _until(self, asked: Callable[[], T]) -> T:
        for left in range(TRIES - 1, -1, -1):
            try:
                return asked()
            except AnswerError as error:
                if not left:
                    raise
                self.say(f"{error}\n")
        raise AssertionError("the last try returns or raises")


def person_here() -> Person | None:
    """Whoever sits at this terminal; None where nobody does."""
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        return None
    return Person(_line, hidden, _say)


def _line(question: str) -> str:
    _say(question)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\r\n")


def hidden(question: str) -> str:
    """A line that is not shown while it is typed. Raises `AnswerError` where this terminal cannot hide it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass(question)
        except getpass.GetPassWarning:
            raise AnswerError("this terminal shows what is typed: give the key with --key-env or --key-stdin") from None


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
