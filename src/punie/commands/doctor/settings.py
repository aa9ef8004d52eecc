"""The doctor's look at the settings: each file by itself, with the line of what is wrong, and the variables."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from punie.bootstrap.settings.files import (
    SettingsFile,
    bytes_of,
    project_settings_file,
    read_settings_file,
    user_settings_file,
)
from punie.bootstrap.settings.keys import KEYS, RULES, variable_of
from punie.bootstrap.settings.permissions import RuleSource, home_of, parse_rules
from punie.bootstrap.settings.settings import key_named
from punie.commands.config.shown import left_out_words
from punie.commands.doctor.examination import Case, Check
from punie.domain.errors import SettingsError
from shellsight.parser.tree_sitter_bash import TreeSitterBashParser

FROM_THE_ENVIRONMENT_ALONE = (
    "PUNIE_CONFIG", "PUNIE_HOME", "PUNIE_LOG_LEVEL", "PUNIE_MAX_LINE_BYTES", "PUNIE_STATE_DIR",
)  # fmt: skip
"""What is needed before any file is read."""

_HEADER = re.compile(r"^\s*\[\[?\s*(?P<name>[^\[\]]+?)\s*\]?\]")
_ASSIGNED = re.compile(r"^\s*(?P<name>[^=#]+?)\s*=")
_SYNTAX_LINE = re.compile(r"\(at line (?P<line>\d+), column \d+\)")
_RULE = re.compile(r"rule (?P<number>\d+)")
_MOST_NAMED = 5


async def all_settings(case: Case) -> Sequence[Check]:
    """What kept the settings from being read that is in no file; mostly nothing."""
    if case.trouble is not None:
        raise case.trouble
    return []


def your_settings(case: Case) -> Sequence[Check]:
    """The user's file."""
    return [_file("your settings", user_settings_file(case.environ), case, left_out=0)]


def project_settings(case: Case) -> Sequence[Check]:
    """The project's file, and what it says in vain."""
    left_out = 0 if case.traced is None else len(list(left_out_words(case.traced)))
    path = project_settings_file(os.path.realpath(case.cwd))
    return [_file("project settings", path, case, left_out=left_out)]


def variables(case: Case) -> Sequence[Check]:
    """`PUNIE_*` of the environment: what they say is never shown, for it may be a secret."""
    given = sorted(name for name, value in case.environ.items() if name.startswith("PUNIE_") and value)
    by_variable = {variable_of(key): key for key in KEYS}
    wrong = [f"{name}: {problem}" for name in given if (problem := _problem(by_variable.get(name), case, name))]
    if wrong:
        first = wrong[0].partition(":")[0]
        fix = f"Correct or unset it; punie config explain {by_variable[first]} says what it takes."
        return [Check("variables", ok=False, detail="; ".join(wrong), fix=fix)]
    known = [name for name in given if name in by_variable or name in FROM_THE_ENVIRONMENT_ALONE]
    detail = f"set: {', '.join(known) or 'none'}"
    for name in given:
        near = difflib.get_close_matches(name, (*by_variable, *FROM_THE_ENVIRONMENT_ALONE), n=1, cutoff=0.85)
        if name not in known and near:
            detail += f"; {name} is none of Punie's, did you mean {near[0]}?"
    return [Check("variables", ok=True, detail=detail)]


def _problem(key: str | None, case: Case, variable: str) -> str | None:
    if key is None:
        return None
    try:
        KEYS[key].kind.parse(case.environ[variable])
    except ValueError as error:
        return str(error)
    return None


def _file(name: str, path: Path, case: Case, left_out: int) -> Check:
    try:
        file = read_settings_file(path)
    except SettingsError as error:
        match = _SYNTAX_LINE.search(error.reason)
        where = f", line {match['line']}" if match else ""
        fix = f"Correct {path}{where}; nothing runs with settings that cannot be read."
        return Check(name, ok=False, detail=f"{path}{where}: {error.reason}", fix=fix)
    if not file.digest:
        return Check(name, ok=True, detail=f"{path} is not there: defaults")
    problems = list(_problems(file, case))
    if not problems:
        detail = f"{path}: {len(file.values)} set"
        if left_out:
            detail += f"; {left_out} of them left out until you trust the file (punie permissions trust)"
        return Check(name, ok=True, detail=detail)
    text = bytes_of(path).decode("utf-8", "replace")
    said = [_located(key, reason, text) for key, reason in problems]
    more = f"; and {len(said) - _MOST_NAMED} more" if len(said) > _MOST_NAMED else ""
    detail = f"{path}: {'; '.join(said[:_MOST_NAMED])}{more}"
    return Check(name, ok=False, detail=detail, fix=f"Correct {path}; {_how(problems[0][0])}")


def _how(key: str) -> str:
    if key in KEYS or key == RULES.name:
        return f"punie config explain {key} says what it takes."
    return "punie config show lists all settings there are."


def _problems(file: SettingsFile, case: Case) -> Iterator[tuple[str, str]]:
    """Key and reason of everything that is wrong, not only of the first."""
    for name, value in file.values.items():
        try:
            if name == RULES.name:
                parse_rules(value, RuleSource("doctor", file.path, home_of(case.environ), TreeSitterBashParser))
            else:
                key_named(name, file.path).kind.parse(value)
        except SettingsError as error:
            yield name, error.reason
        except ValueError as error:
            yield name, f"{name}: {error}"


def _located(key: str, reason: str, text: str) -> str:
    number = _RULE.search(reason)
    line = line_of(key, text, int(number["number"]) if number and key == RULES.name else 1)
    return reason if line is None else f"line {line}: {reason}"


def line_of(key: str, text: str, number: int = 1) -> int | None:
    """The line, counted from 1, on which a TOML text sets that dotted key; None where it is not plain to see.

    Of a table that is there several times (`[[permissions.rules]]`), the line where the one of that number begins.
    """
    table, seen = "", 0
    for place, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _bare(header["name"])
            seen += table == key
            if table == key and seen == number:
                return place
        elif assigned := _ASSIGNED.match(line):
            name = _bare(assigned["name"])
            if key in {name, f"{table}.{name}"} and (not table or key == f"{table}.{name}"):
                return place
    return None


def _bare(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))
