"""Call forms: made from the rows of shellsight, and kept where Punie would run them without a question in read-only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from random import Random

from attrs import frozen

from punie.bootstrap.settings.settings import load_settings
from punie.commands.flags import settings_flags
from punie.commands.permissions.run import CheckRequest, PermissionJudge
from punie.domain.permission.rules import Verdict
from shellsight.parser.tree_sitter_bash import TreeSitterBashParser
from shellsight.programs.registry import PROGRAMS
from shellsight.programs.row import Row
from tests.oracle.vocabulary import Words, words_of
from tests.shellsight.corpus.lines import everyday

OPERANDS = (
    "src/app.py", "", ".", "src", "*", "vendor/lib", "links", "README.md src/app.py", "HEAD", "data.json", "a.tar",
    "links/token", "src/*", "-- -opwned", "HEAD:README.md", "trap", "vendor",
)  # fmt: skip
"""Words behind the options, from the trap repository; "" is none."""
VALUES = ("src/app.py", "1", "json", "links/token", "always", "name", "vendor/lib", ".", "sh")
"""Values of options that take one."""
FRAMES = ("cd vendor/lib && {}", "cd vendor/tree && {}", "cd inner && {}", "cd links/secret && {}", "{} | cat")
"""Lines around a call: folders with traps of their own, and a pipe."""
EVERYDAY = "(everyday lines)"


@frozen
class Form:
    """A line that runs without a question. `plain`: each program in it is said to load nothing of a project."""

    program: str
    line: str
    plain: bool


def made(name: str, row: Row, seed: int, limit: int) -> list[str]:
    """Lines that call the program: the row's examples, each option of it and of its verbs, and `limit` pairs of each.

    The same row, seed and limit give the same lines.
    """
    random = Random(f"{seed}:{name}")  # noqa: S311 - a choice that can be repeated
    words = words_of(row.facts)
    starts = list(_starts(name, words))
    lines = [*_fixed(name, row), *(start for start, _ in starts)]
    if name == "git":
        lines += [f"git -C {place}{start[3:]}" for start, _ in starts for place in ("vendor/lib", "vendor/tree")]
    for start, inner in starts:
        lines += (f"{start} {operand}".strip() for operand in (OPERANDS if inner is words else OPERANDS[:3]))
        lines += (f"{start} {_given(inner, option, random)} {random.choice(OPERANDS)}" for option in inner.options)
        for _ in range(limit if inner.options else 0):
            pair = [_given(inner, option, random) for option in random.choices(inner.options, k=2)]
            lines.append(" ".join((start, *pair, random.choice(OPERANDS))))
    return list(dict.fromkeys(line.strip() for line in lines))


def _fixed(name: str, row: Row) -> Iterator[str]:
    """The row's own examples and whole calls, also from folders with traps of their own."""
    whole = [line for line in _examples(name, row) if line.split()[0] == name]
    whole += (f"{name} {words}".strip() for words in (row.looks or "").split(","))
    yield from whole
    for frame in FRAMES:
        yield from (frame.format(line) for line in (name, f"{name} --version", *whole[:4]))


def _examples(name: str, row: Row) -> Iterator[str]:
    for example in row.examples:
        line = example.rpartition(" => ")[0]
        yield name + line[1:] if line.startswith("*") else line


def _starts(start: str, words: Words, depth: int = 2) -> Iterator[tuple[str, Words]]:
    """The program and its verbs, each with the words that may follow."""
    yield start, words
    for verb, inner in words.verbs.items() if depth else ():
        yield from _starts(f"{start} {verb}", inner, depth - 1)


def _given(words: Words, option: str, random: Random) -> str:
    if option not in words.values:
        return option
    return f"{option}{'=' if option.startswith('--') else ' '}{random.choice(VALUES)}"


@frozen
class Policy:
    """The judge of lines: that of `punie permissions check`, for a session in `project` with settings of nobody."""

    project: Path
    judge: PermissionJudge

    @classmethod
    def of(cls, project: Path, home: Path) -> Policy:
        """The policy of a session with an empty home."""
        environ, parser = {"HOME": str(home), "PUNIE_HOME": str(home / "punie")}, TreeSitterBashParser()
        flags = settings_flags(mode="read-only")
        return cls(
            project,
            PermissionJudge(environ, lambda cwd: load_settings(environ, flags, cwd, parser=lambda: parser), parser),
        )

    def forms(self, program: str, lines: Iterable[str]) -> Iterator[Form]:
        """The lines that run without a question."""
        for line in lines:
            asked = {"tool": "run_command", "arguments": {"command": line}, "mode": "read-only"}
            decision, facts, _ = self.judge.judge(CheckRequest.of(asked, str(self.project)))
            if decision.verdict is Verdict.ALLOW:
                parts = facts.command.parts if facts.command is not None else ()
                yield Form(program, line, bool(parts) and all(getattr(part, "plain", False) for part in parts))


def all_lines(seed: int, limit: int, only: frozenset[str]) -> Mapping[str, list[str]]:
    """The made lines of each program, by its name, and the lines of the everyday corpus."""
    found = {name: made(name, row, seed, limit) for name, row in PROGRAMS.items() if not only or name in only}
    return found if only else {**found, EVERYDAY: [line.text for line in everyday()]}
