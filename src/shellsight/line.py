"""A shell line as a parser gives it: commands with their words, and how they hang together.

The tree holds the line as written; its effects are worked out in `report`. Whatever a parser is not certain of
becomes `Unreadable` (a command) or `Opaque` (a piece of a word), never a guess.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from attrs import frozen


@frozen
class Literal:
    """Text without special meaning, once quotes and backslashes are removed."""

    text: str
    quoted: bool = False


@frozen
class Variable:
    """`$NAME`, `${NAME}`, `$1`, `$@`; forms that compute (`${x:-y}`, `${#x}`) are `Opaque`."""

    name: str
    quoted: bool = False


@frozen
class Substitution:
    """The output of a script: `$(...)`, backticks; `<(...)` and `>(...)` with `process` set."""

    script: Script
    quoted: bool = False
    process: str = ""


@frozen
class Glob:
    """An unquoted `*`, `?`, `[...]` (as written), which the shell replaces by names of files."""

    text: str


@frozen
class Tilde:
    """An unquoted `~` or `~user` at the beginning of a word (or of an assignment's value)."""

    user: str = ""


@frozen
class Opaque:
    """A piece whose value is known only once the line runs; `why` names it: arithmetic, brace expansion, `${x//y}`.

    `scripts` are those that run in order to find its value.
    """

    source: str
    why: str
    scripts: tuple[Script, ...] = ()


Piece: TypeAlias = Literal | Variable | Substitution | Glob | Tilde | Opaque


@frozen
class Word:
    """One word: its pieces in order; no pieces at all is the empty word `''`. `source` is the word as written."""

    pieces: tuple[Piece, ...]
    source: str = ""

    @property
    def text(self) -> str | None:
        """The word's value where it is certain before the line runs; else None."""
        if len(self.pieces) == 1:  # nearly every word, and this is asked often
            piece = self.pieces[0]
            return piece.text if isinstance(piece, Literal) else None
        texts = [piece.text for piece in self.pieces if isinstance(piece, Literal)]
        return "".join(texts) if len(texts) == len(self.pieces) else None


@frozen
class Assignment:
    """`NAME=value` before a command or by itself; `append` for `+=`, `value` None for an array or a bare name."""

    name: str
    value: Word | None
    append: bool = False
    source: str = ""


@frozen
class Redirect:
    """A redirection: `operator` as written without its descriptor (`>`, `>>`, `&>`, `<`, `<<`, `<<<`, `>&`).

    `descriptor` is the number before it, if any: `2>` is `>` with "2". `target` is the file, or for `<<` and `<<<` the
    text that is fed in; `>&1` has the target `1`.
    """

    operator: str
    target: Word | None
    descriptor: str = ""
    source: str = ""


@frozen
class Simple:
    """One simple command; without words it only assigns or redirects."""

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    source: str = ""


class CompoundKind(StrEnum):
    """The shell's compound commands; `TEST` is `[[ ... ]]`, `ARITHMETIC` `((...))`."""

    SUBSHELL = "subshell"
    GROUP = "group"
    IF = "if"
    WHILE = "while"
    UNTIL = "until"
    FOR = "for"
    SELECT = "select"
    CASE = "case"
    FUNCTION = "function"
    TEST = "test"
    ARITHMETIC = "arithmetic"


@frozen
class Compound:
    """A compound command: its scripts in the order written, conditions first.

    `name` is a function's name or a loop's variable, `words` what a loop runs over, a case looks at or a test compares.
    """

    kind: CompoundKind
    scripts: tuple[Script, ...]
    redirects: tuple[Redirect, ...] = ()
    name: str = ""
    words: tuple[Word, ...] = ()
    source: str = ""


@frozen
class Pipeline:
    """Commands whose output feeds the next one's input; `joins` are `|` or `|&`, one fewer than stages."""

    stages: tuple[Command, ...]
    joins: tuple[str, ...] = ()
    negated: bool = False


@frozen
class Unreadable:
    """A piece of the line that was not understood; `why` is for a person."""

    source: str
    why: str


Command: TypeAlias = Simple | Compound | Pipeline | Unreadable


@frozen
class Step:
    """One command of a list and what follows it: `&&`, `||`, `;`, `&`, or nothing at the end."""

    command: Command
    separator: str = ""


@frozen
class Script:
    """A list of commands; `readable` is False where any part of it, however deep, was not understood."""

    steps: tuple[Step, ...]
    readable: bool = True
