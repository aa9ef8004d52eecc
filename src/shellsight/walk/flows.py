"""The output that a command hands on to the next one, and its effect there."""

from __future__ import annotations

from attrs import evolve, frozen

from shellsight.report import Effect
from shellsight.words.call import Call, Feed, Outcome, dangerous, forbidden
from shellsight.words.form import stricter

_WORDS = {"network": "what was just downloaded", "decoder": "what was just decoded"}


@frozen
class Flow:
    """The output of a command: `source` as in `Feed`, names of files, or exactly `text`."""

    source: str = ""
    listing: bool = False
    narrow: bool = False
    text: str | None = None

    def feed(self, source: str) -> Feed:
        """The feed of the next command; `source` is where the output came from, if not from the command itself."""
        return Feed(fed=True, source=self.source or source, listing=self.listing, narrow=self.narrow, text=self.text)


def flow_of(call: Call, outcome: Outcome) -> Flow:
    """The output of the command, given its outcome and its own feed."""
    return Flow(
        source=outcome.source or call.feed.source,
        listing=outcome.lists or (outcome.passes and call.feed.listing),
        narrow=outcome.narrow or (outcome.passes and call.feed.narrow),
        text=_printed(call),
    )


def _printed(call: Call) -> str | None:
    """The text that `echo` or `printf` print, where that is certain."""
    if call.name not in {"echo", "printf"} or not call.args or not all(arg.certain for arg in call.args):
        return None
    texts = [arg.text for arg in call.args]
    while call.name == "echo" and texts and texts[0] in {"-n", "-e", "-E"}:
        texts = texts[1:]
    if call.name == "printf" and texts and texts[0] in {"%s", "%s\\n", "%b"}:
        texts = texts[1:]
    return " ".join(texts)


def poured(outcome: Outcome, feed: Feed, ran: str) -> Outcome:
    """The outcome once it is known what is run: `ran` is where a substitution in the command's words got its output."""
    source = (feed.source if outcome.runs_input else "") or (ran if outcome.inline_code or outcome.runs_input else "")
    if source:
        return stricter(outcome, forbidden(f"runs {_WORDS[source]}", (), Effect.RUNS_CODE))
    if outcome.runs_input:
        return evolve(
            stricter(outcome, dangerous("runs what it is fed as a program", (), Effect.RUNS_CODE)), inline_code=True
        )
    return outcome
