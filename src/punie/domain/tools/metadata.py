"""What a tool says of itself beyond name, kind and schema (S2-38 to S2-54)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Flag, auto

from attrs import field, frozen

from punie.domain.values.json_value import EMPTY_OBJECT, JsonObject, freeze_object


class Capability(Flag):
    """What a tool needs of its surroundings in order to work at all; a tool that lacks one is left out."""

    NONE = 0
    READ_FILES = auto()
    WRITE_FILES = auto()
    TERMINAL = auto()
    NETWORK = auto()
    GIT = auto()


class Permission(Flag):
    """What a tool does that somebody may want to allow or forbid."""

    NONE = 0
    READ = auto()
    WRITE = auto()
    EXECUTE = auto()
    NETWORK = auto()


def _words(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


@frozen
class ToolExample:
    """One way to call a tool: arguments that fit its schema, and what they are for."""

    arguments: JsonObject = field(default=EMPTY_OBJECT, converter=freeze_object)
    description: str = ""


def _examples(values: Iterable[ToolExample]) -> tuple[ToolExample, ...]:
    return tuple(values)


@frozen
class ToolMetadata:
    """Everything optional that a tool may say; lives as long as its descriptor.

    `requires_confirmation` forces a question. `estimated_time_ms` feeds estimates and the time limit. `max_input_bytes`
    bounds the arguments as JSON. `platforms` are `sys.platform` values, empty for all. `dependencies` are programs or
    Python modules (`python:NAME`) that must be there.
    """

    version: str | None = None
    author: str | None = None
    help_url: str | None = None
    examples: tuple[ToolExample, ...] = field(default=(), converter=_examples)
    required_capabilities: Capability = Capability.NONE
    required_permissions: Permission = Permission.NONE
    deprecated: bool = False
    experimental: bool = False
    requires_confirmation: bool = False
    estimated_time_ms: int | None = None
    max_input_bytes: int | None = None
    platforms: tuple[str, ...] = field(default=(), converter=_words)
    dependencies: tuple[str, ...] = field(default=(), converter=_words)
