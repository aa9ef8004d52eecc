"""The inputs of a server's description: fixed values, values that a person has to give, and values that are left out.

A value that a person has to give becomes a reference to a variable of the environment: no secret is written down.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from attrs import define, field, frozen

from punie.domain.values.json_value import json_type
from shellsight.package_runners import Argument

LONGEST_TEXT = 4_096
MOST_ITEMS = 100
_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FLAG = re.compile(r"--?[A-Za-z0-9][A-Za-z0-9._-]*")


class DescriptionError(Exception):
    """A description is not used; the message says why, in words for a person."""


@frozen
class Wanted:
    """A variable of the environment that a person has to set, its purpose, and its publisher's words about it."""

    variable: str
    purpose: str
    secret: bool = False
    description: str = ""


@define
class Inputs:
    """The inputs of one package or address, read one by one; `prefix` begins the names of the variables it makes up."""

    prefix: str
    wanted: list[Wanted] = field(factory=list[Wanted])
    left_out: list[str] = field(factory=list[str])

    def arguments(self, given: Mapping[str, object], key: str) -> tuple[Argument, ...]:
        """The arguments of that list without the optional ones. Raises `DescriptionError`."""
        found = (self._argument(argument, f"{key}[{number}]") for number, argument in enumerate(items(given, key)))
        return tuple(argument for argument in found if argument is not None)

    def pairs(self, given: Mapping[str, object], key: str, *, own_names: bool) -> dict[str, str]:
        """Names and values of that list: of variables, whose references keep their names (`own_names`), or headers."""
        made: dict[str, str] = {}
        for number, fields in enumerate(items(given, key)):
            where = f"{key}[{number}]"
            name = text(fields, "name", where)
            if name in made:
                raise DescriptionError(f"{where}: {name!r} is there twice")
            if own_names and not _VARIABLE.fullmatch(name):
                raise DescriptionError(f"{where}: {name!r} is no name of a variable")
            value = self.value(fields, where, purpose=name, variable=name if own_names else self.named(name))
            if value is not None:
                made[name] = value
        return made

    def value(self, fields: Mapping[str, object], where: str, *, purpose: str, variable: str) -> str | None:
        """The fixed text, else the default, else a reference to a variable; None for an optional value."""
        required, secret = yes(fields, "isRequired", where), yes(fields, "isSecret", where)
        if "value" in fields:
            return self.filled(text(fields, "value", where), fields, where, required=required)
        if "default" in fields and not secret:
            return joined([clean(text(fields, "default", where), where)], 0, where)
        if required:
            return self._reference(fields, where, purpose, variable)
        self.left_out.append(purpose)
        return None

    def filled(self, template: str, fields: Mapping[str, object], where: str, *, required: bool) -> str | None:
        """The text with its `{variables}` replaced; undefined ones stay as they are."""
        clean(template, where)
        variables = mapping(fields.get("variables", {}), f"{where}.variables")
        places = [match for match in _PLACE.finditer(template) if match[1] in variables]
        given = {match[1]: mapping(variables[match[1]], f"{where}.variables.{match[1]}") for match in places}
        open_ones = [name for name, inner in given.items() if _is_open(inner, where)]
        if open_ones and not required and not any(yes(given[name], "isRequired", where) for name in open_ones):
            self.left_out.append(f"{where} ({', '.join(open_ones)})")
            return None
        parts: list[str] = []
        end = references = 0
        for match in places:
            name, inner = match[1], given[match[1]]
            if name in open_ones:
                references += 1
                put_in = self._reference(inner, where, name, self.named(name))
            else:
                put_in = clean(text(inner, "value" if "value" in inner else "default", where), where)
            parts += (template[end : match.start()], put_in)
            end = match.end()
        return joined([*parts, template[end:]], references, where)

    def named(self, name: str) -> str:
        """The name of a variable for a value without one."""
        made = re.sub(r"[^A-Za-z0-9]+", "_", f"{self.prefix}_{name}").strip("_").upper()
        return f"_{made}" if made[:1].isdigit() else made

    def _argument(self, fields: Mapping[str, object], where: str) -> Argument | None:
        kind = text(fields, "type", where)
        if kind == "positional":
            hint = text(fields, "valueHint", where) if "valueHint" in fields else "argument"
            value = self.value(fields, where, purpose=hint, variable=self.named(hint))
            return None if value is None else Argument(None, value)
        if kind != "named":
            raise DescriptionError(f"{where}: its type must be positional or named, not {kind!r}")
        name = text(fields, "name", where)
        if not _FLAG.fullmatch(name):
            raise DescriptionError(f"{where}: {name!r} is no name of an option, with its dashes")
        if fields.keys() <= {"type", "name"}:
            return Argument(name, None)
        value = self.value(fields, where, purpose=name, variable=self.named(name))
        return None if value is None else Argument(name, value or None)

    def _reference(self, fields: Mapping[str, object], where: str, purpose: str, variable: str) -> str:
        description = text(fields, "description", where) if "description" in fields else ""
        wanted = Wanted(variable, purpose, yes(fields, "isSecret", where), description)
        if wanted not in self.wanted:
            self.wanted.append(wanted)
        return f"${{{variable}}}"


def text(fields: Mapping[str, object], key: str, where: str = "") -> str:
    """The text at a key, bounded. Raises `DescriptionError` where it is missing or not a text."""
    value = fields.get(key)
    place = f"{where}.{key}" if where else key
    if key not in fields:
        raise DescriptionError(f"{place} is missing")
    if not isinstance(value, str):
        raise DescriptionError(f"{place} must be a text, not {json_type(value)}")
    if len(value) > LONGEST_TEXT:
        raise DescriptionError(f"{place} is longer than {LONGEST_TEXT} characters")
    return value


def items(fields: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    """The list of objects at a key; empty where there is none. Raises `DescriptionError`."""
    value = fields.get(key, [])
    if not isinstance(value, list):
        raise DescriptionError(f"{key} must be a list, not {json_type(value)}")
    listed = cast("list[object]", value)
    if len(listed) > MOST_ITEMS:
        raise DescriptionError(f"{key} has more than {MOST_ITEMS} items")
    return [mapping(item, f"{key}[{number}]") for number, item in enumerate(listed)]


def yes(fields: Mapping[str, object], key: str, where: str) -> bool:
    """The boolean at a key; False where there is none. Raises `DescriptionError`."""
    value = fields.get(key, False)
    if not isinstance(value, bool):
        raise DescriptionError(f"{where}.{key} must be true or false")
    return value


def clean(value: str, where: str) -> str:
    """The text, which a person can see whole on one line. Raises `DescriptionError` for any other text."""
    if not value.isprintable():
        raise DescriptionError(f"{where} has characters that cannot be seen, such as a line break")
    return value


def joined(parts: list[str], references: int, where: str) -> str:
    """The parts as one text with exactly that many references `${...}`. Raises `DescriptionError`.

    A reference of the description's own would be replaced from the environment, which could send its secrets away.
    """
    made = "".join(parts)
    if made.count("${") != references:
        raise DescriptionError(f"{where} has ${{...}} in it, which would be filled in from your environment")
    return made


def _is_open(inner: Mapping[str, object], where: str) -> bool:
    return "value" not in inner and ("default" not in inner or yes(inner, "isSecret", where))


def mapping(value: object, where: str) -> Mapping[str, object]:
    """The object at `where`. Raises `DescriptionError` for any other value."""
    if not isinstance(value, Mapping):
        raise DescriptionError(f"{where} must be an object, not {json_type(value)}")
    return cast("Mapping[str, object]", value)
