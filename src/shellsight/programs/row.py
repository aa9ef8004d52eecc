"""One program in one row: its names, what is known of its calls, and examples that prove it."""

from __future__ import annotations

import re
from typing import NamedTuple

from attrs import evolve

from shellsight.report import Effect
from shellsight.words.arguments import names, prefixes
from shellsight.words.call import Call, Judge, Outcome, dangerous, safe, unknown


class Row(NamedTuple):
    """The facts about one program, or about several that take the same words.

    Args:
        names: the program's plain names, with blanks between them.
        facts: the judge of its calls: a table (`form`, `verbs`), one outcome (`always`), or a function.
        examples: lines with what they do, `LINE => STANDING: EFFECTS`; `*` at a line's beginning is each of the names.
        looks: whole calls that only look, with commas between them; an empty one is the program without words.
        asks: a regular expression for first words that query a data base; only names may follow.
        about: a regular expression for further words that may follow those of `asks`.
        far: words that install, delete or empty, wherever they appear.
        code: beginnings of words that bring code, or name a program that runs.
        tasks: whether its words name tasks, which are dangerous where they sound far-reaching.
        plain: whether a call that only looks loads nothing of a project: no settings, plugin, hook, toolchain file or
            module that is found in the working directory or above. A file of patterns to leave out is none of these.

    The fields are asked in the order `asks`, `looks`, `far`, `code`, `facts`.
    """

    names: str
    facts: Judge
    examples: tuple[str, ...]
    looks: str | None = None
    asks: str = ""
    about: str = ""
    far: str = ""
    code: str = ""
    tasks: bool = False
    plain: bool = False

    def judge(self) -> Judge:
        """The judge of the program's calls, with all fields of the row in it."""
        judge = self.facts
        if self.code:
            judge = _bringing(prefixes(self.code), judge)
        if self.far:
            judge = _reaching(names(self.far), judge)
        if self.looks is not None:
            judge = _exactly(frozenset(tuple(words.split()) for words in self.looks.split(",")), judge)
        if self.asks:
            judge = _asked(
                re.compile(rf"(?:{self.asks})\Z"), re.compile(rf"(?:{self.about or _NAME}|{_NAME})\Z"), judge
            )
        return _with_tasks(judge) if self.tasks else judge


_NAME = r"[A-Za-z0-9][A-Za-z0-9._+:@~-]*"


def unheard(call: Call) -> Outcome:
    """The outcome for a program of which nothing is known beside the calls that its row lists."""
    return unknown(f"nothing is known of a program called {call.name}")


def _bringing(marks: tuple[str, ...], otherwise: Judge) -> Judge:
    def judge(call: Call) -> Outcome:
        for arg in call.args:
            if arg.text.startswith(marks):
                reason = f"a word that brings code: {arg.shown}"
                return evolve(dangerous(reason, (), Effect.RUNS_CODE), inline_code=True)
        return otherwise(call)

    return judge


def _reaching(words: frozenset[str], otherwise: Judge) -> Judge:
    def judge(call: Call) -> Outcome:
        found = words.intersection(arg.text for arg in call.args)
        return dangerous(f"{call.name} {min(found)}: installs, deletes or empties") if found else otherwise(call)

    return judge


def _exactly(calls: frozenset[tuple[str, ...]], otherwise: Judge) -> Judge:
    def judge(call: Call) -> Outcome:
        return safe("only looks") if _words(call) in calls else otherwise(call)

    return judge


def _asked(first: re.Pattern[str], others: re.Pattern[str], otherwise: Judge) -> Judge:
    def judge(call: Call) -> Outcome:
        words = _words(call)
        if words and first.match(words[0]) and all(others.match(word) for word in words[1:]):
            return safe("only looks")
        return otherwise(call)

    return judge


def _with_tasks(otherwise: Judge) -> Judge:
    def judge(call: Call) -> Outcome:
        return otherwise(evolve(call, tasks=True))

    return judge


def _words(call: Call) -> tuple[str, ...] | None:
    """The call's words; None where one is not certain."""
    return tuple(arg.text for arg in call.args) if all(arg.certain for arg in call.args) else None
