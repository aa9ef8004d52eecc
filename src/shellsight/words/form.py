"""Programs that a table describes: which options they may have, and what their operands are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any, TypedDict

from attrs import evolve, frozen

from shellsight.report import Effect, PathEffect, PathUse, Standing
from shellsight.secret_names import is_secret
from shellsight.words.arguments import Arg, Given, Kind, Listing, Options, Reading, flag_set, prefixes
from shellsight.words.call import FINE, Call, Judge, Outcome, dangerous, unknown
from shellsight.words.places import here, is_below, uses
from shellsight.words.secrecy import could_be_private, has_glob, seeks_private

if TYPE_CHECKING:
    from typing import Unpack


class Operands(Enum):
    """The kind of a program's operands."""

    NONE = "none may be given"
    TEXT = "text"
    LOOK = "paths whose names and sizes are shown"
    COUNT = "paths whose content is counted or summed up, never shown"
    READ = "paths whose content is shown"
    SEARCH = "a pattern, then paths whose lines are shown"
    WRITE = "paths that are written"


_EFFECTS = {
    Operands.LOOK: PathEffect.LOOK,
    Operands.COUNT: PathEffect.READ,
    Operands.READ: PathEffect.READ,
    Operands.SEARCH: PathEffect.READ,
    Operands.WRITE: PathEffect.WRITE,
}


@frozen
class Form:
    """One program's table: its options, and what else it needs.

    `reads`, `globs`: valued options that hold a path, or a pattern for names. `deep`: options that make it go into
    folders; `follows`: options that make it follow the links there. `pattern`: options that hold the pattern, so that
    no operand does. `keen`: some option of it runs or writes, so a word that might become one is no operand. `walks`:
    without operands it looks at the working directory. `tells`: options with which it prints more than names (the
    targets of links), or parts of them, so that its output is no listing.
    """

    options: Options
    operands: Operands = Operands.READ
    standing: Standing = Standing.SAFE
    reason: str = "only looks"
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    globs: frozenset[str] = frozenset()
    pattern: frozenset[str] = frozenset()
    deep: frozenset[str] = frozenset()
    follows: frozenset[str] = frozenset()
    always_deep: bool = False
    walks: bool = False
    keen: bool = False
    lists: frozenset[str] = frozenset()
    always_lists: bool = False
    tells: frozenset[str] = frozenset()
    passes: bool = False
    effects: frozenset[Effect] = frozenset()

    def judge(self, call: Call) -> Outcome:
        """The outcome of a call, by this table."""
        reading = self.options.read(call.args)
        if reading.strange:
            return unknown(f"an option that nothing is known of: {reading.strange[0].text}", self._paths(call, reading))
        paths = self._paths(call, reading)
        listed = self.always_lists or (bool(self.lists) and not self.lists.isdisjoint(reading.names))
        names_only = self.tells.isdisjoint(reading.names) and not _renames(call.args)
        outcome = Outcome(
            self.standing,
            self.reason,
            paths,
            self.effects,
            lists=self._listing(call, paths) if listed and names_only else None,
            passes=self.passes and names_only and not self._files(reading),
        )
        return stricter(outcome, self._doubts(call, reading))

    def _listing(self, call: Call, paths: tuple[PathUse, ...]) -> Listing | None:
        if seeks(call.args) or not all(is_below(use.path, call.cwds) for use in paths):
            return None
        return Listing(links="" if self.operands is Operands.SEARCH else "*")  # a search itself reads what it lists

    def _files(self, reading: Reading) -> tuple[Arg, ...]:
        """The operands that are paths."""
        if self.operands is Operands.SEARCH and self.pattern.isdisjoint([option.name for option in reading.options]):
            first = reading.operands[:1]
            # An unquoted pattern that names several files is the first of them, and the others are read.
            return reading.operands if first and first[0].kind is Kind.GLOB else reading.operands[1:]
        return () if self.operands in (Operands.NONE, Operands.TEXT) else reading.operands

    def _paths(self, call: Call, reading: Reading) -> tuple[PathUse, ...]:
        found: list[PathUse] = []
        effect = _EFFECTS.get(self.operands, PathEffect.READ)
        deep = self.always_deep or (bool(self.deep) and not self.deep.isdisjoint(reading.names))
        follows = deep and bool(self.follows) and not self.follows.isdisjoint(reading.names)
        files = self._files(reading)
        for arg in files:
            looked = effect is PathEffect.LOOK and arg.kind is Kind.UNCERTAIN and arg.listing is None
            if not looked and not (arg.certain and arg.text == "-"):
                found.extend(uses(call, arg, effect, below=deep, follows=follows))
        if not files and (self.walks or (deep and effect is PathEffect.READ and self.operands is Operands.SEARCH)):
            found.extend(here(call, effect, below=deep, follows=follows))
        found.extend(self._named(call, reading))
        return tuple(found)

    def _named(self, call: Call, reading: Reading) -> Iterator[PathUse]:
        """The paths that options hold."""
        for option in reading.options:
            if option.value is not None and option.name in self.reads:
                yield from uses(call, option.value, PathEffect.READ)
            elif option.value is not None and option.name in self.writes:
                yield from uses(call, option.value, PathEffect.WRITE)

    def _doubts(self, call: Call, reading: Reading) -> Outcome:
        """Doubts that keep a call from being understood: words of unknown value."""
        if self.operands is Operands.NONE and reading.operands:
            return unknown(f"an operand that nothing is known of: {reading.operands[0].text}")
        loose = reading.operands[: len(reading.operands) - reading.guarded]
        if self.keen and (doubtful := next((arg for arg in loose if arg.may_be_option), None)) is not None:
            return unknown(f"a word that might become an option: {doubtful.shown}")
        told = next((found for option in reading.options if (found := self._of_value(option)) is not None), None)
        if told is not None:
            return told
        far = next((found for arg in self._files(reading) if (found := _elsewhere(arg)) is not None), None)
        if far is not None:
            return far
        if self.operands in (Operands.READ, Operands.SEARCH):
            return self._contents(call, reading)
        return FINE

    def _of_value(self, option: Given) -> Outcome | None:
        """The objection to an option's value."""
        value = option.value
        if value is None:
            return None
        parts = _spread(option) if option.name not in self.reads | self.writes else ()
        if not parts and not value.certain and (option.name in self.reads | self.writes or value.many):
            return unknown(f"the value of {option.name} is not certain")
        sought = parts or (value.text.lstrip("!"),)
        if option.name in self.globs and any(seeks_private(text) for text in sought):
            return unknown(f"looks for files that usually hold secrets: {value.text}")
        return None

    def _contents(self, call: Call, reading: Reading) -> Outcome:
        """The doubt about operands whose content is shown and whose names are not known."""
        search = self.operands is Operands.SEARCH
        for arg in self._files(reading):
            if arg.process:
                continue
            if arg.listing is not None and (arg.listing.narrow or search):
                continue
            if arg.kind is Kind.UNCERTAIN:
                return unknown(f"nobody knows which files are read: {arg.text}")
            if arg.kind is Kind.GLOB and (seeks_private(arg.text) if search else could_be_private(arg.text)):
                return unknown(f"the pattern could match a file that holds secrets: {arg.text}")
        return FINE


def _spread(option: Given) -> tuple[str, ...]:
    """The values of `--exclude-dir={a,b}` and `--include=*.py`: each word they become begins with the option again."""
    value = option.value
    if value is None or not option.glued or not option.name.startswith("--"):
        return ()
    if value.kind is Kind.GLOB:
        return (value.text,) if _NAMES.fullmatch(value.text) else ()
    braces = _ALTERNATIVES.fullmatch(value.text) if value.kind is Kind.UNCERTAIN else None
    return tuple(braces[1].split(",")) if braces is not None else ()


_NAMES = re.compile(r"[\w.*?-]+")
_ALTERNATIVES = re.compile(r"\{([\w.*,-]+)\}")


def _elsewhere(arg: Arg) -> Outcome | None:
    """The objection to an operand as a file's name: an address, or a list of options (`@FILE`)."""
    if "://" in arg.text:
        return dangerous(f"an address, which some programs fetch: {arg.text}", (), Effect.NETWORK)
    if (arg.prefix or arg.text).startswith("@"):
        return unknown(f"may hold more options: {arg.text}")
    return None


def stricter(one: Outcome, other: Outcome) -> Outcome:
    """The first outcome with the stricter standing of the two, and the reason of that one."""
    if other.standing <= one.standing:
        spoilt = (one.mild or one.proviso is not None) and other.standing > Standing.ORDINARY
        return evolve(one, proviso=None, mild=False) if spoilt else one
    weak = one.standing <= Standing.ORDINARY
    return evolve(
        one,
        standing=other.standing,
        reason=other.reason,
        effects=one.effects | other.effects,
        inline_code=one.inline_code or other.inline_code,
        proviso=other.proviso if weak else None,
        mild=other.mild and weak,
    )


class Details(TypedDict, total=False):
    """The further arguments of `form`; options are strings as `flag_set` reads them.

    `optional`: options whose value may only follow an `=`. `reads`, `writes`, `globs`: options whose value is a path
    that is read, a path that is written, a pattern for names of files; they need not be repeated in `values`.
    `digits`: `-20` is an option. `single`: long names follow one dash, as in `find -name`. `first`: options end at the
    first operand. `plus`: `+20` is an option. The others are fields of `Form`.
    """

    optional: str
    reads: str
    writes: str
    globs: str
    pattern: str
    deep: str
    follows: str
    lists: str
    tells: str
    digits: bool
    single: bool
    first: bool
    plus: bool
    standing: Standing
    reason: str
    always_deep: bool
    walks: bool
    keen: bool
    always_lists: bool
    passes: bool
    effects: frozenset[Effect]


def form(flags: str = "", values: str = "", operands: Operands = Operands.READ, **details: Unpack[Details]) -> Judge:
    """A judge that follows a table of options and operands; the table is built with the first call it judges.

    Args:
        flags: options without a value: `"al --all"` is `-a`, `-l` and `--all`.
        values: options that take a value, glued to them or as the next word.
        operands: the kind of all words that are no options.
        details: everything else, see `Details`.

    Returns:
        The judge.
    """
    built: Form | None = None

    def judge(call: Call) -> Outcome:
        nonlocal built
        if built is None:
            built = _built(flags, values, operands, dict(details))
        return built.judge(call)

    return judge


def _built(flags: str, values: str, operands: Operands, details: dict[str, Any]) -> Form:
    kinds = {key: details.pop(key) for key in ("digits", "single", "first", "plus") if key in details}
    optional = flag_set(details.pop("optional", ""))
    named: dict[str, Any] = {key: flag_set(value) if key in _FLAGS else value for key, value in details.items()}
    # Options that hold a path or a pattern take a value, whether `values` repeats them or not.
    held = flag_set(" ".join(str(details.get(key, "")) for key in ("reads", "writes", "globs")))
    return Form(Options(flag_set(flags), flag_set(values) | held, optional, **kinds), operands, **named)


_FLAGS = frozenset({"reads", "writes", "globs", "deep", "follows", "lists", "tells", "pattern"})


def seeks(args: tuple[Arg, ...]) -> bool:
    """Whether one of these words names a secret, or is a pattern for one."""
    return _renames(args) or any(seeks_private(arg.text) if has_glob(arg.text) else is_secret(arg.text) for arg in args)


def _renames(args: tuple[Arg, ...]) -> bool:
    return any(arg.text.startswith(_RENAMING) for arg in args)


_RENAMING = prefixes("-printf -ls -fprintf --format --label --line-prefix --path-separator")
"""Options that make a lister print other words than the names of files."""
