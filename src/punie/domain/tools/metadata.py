"""The optional part of a tool's description, beyond its name, kind and schema."""

from __future__ import annotations

from enum import Flag, auto

from attrs import field, frozen

from punie.domain.values.json_value import EMPTY_OBJECT, JsonObject, freeze_object


class Capability(Flag):
    """The capabilities that a tool needs in order to work at all; a tool that lacks one is left out."""

    NONE = 0
    READ_FILES = auto()
    WRITE_FILES = auto()
    TERMINAL = auto()
    NETWORK = auto()
    GIT = auto()


class Permission(Flag):
    """The effects of a tool that a person may want to allow or forbid."""

    NONE = 0
    READ = auto()
    WRITE = auto()
    EXECUTE = auto()
    NETWORK = auto()


@frozen
class ToolExample:
    """One way to call a tool: arguments that fit its schema, and their purpose in words."""

    arguments: JsonObject = field(default=EMPTY_OBJECT, converter=freeze_object)
    description: str = ""


@frozen
class ToolMetadata:
    """All optional facts of a tool; lives as long as its descriptor.

    `requires_confirmation` forces a question. `estimated_time_ms` feeds estimates and the time limit. `max_input_bytes`
    bounds the arguments as JSON. `platforms` are `sys.platform` values, empty for all. `dependencies` are programs,
    Python modules (`python:NAME`), or programs of which the project has one itself (`project:NAME|NAME`).
    """

    version: str | None = None
    author: str | None = None
    help_url: str | None = None
    examples: tuple[ToolExample, ...] = field(default=(), converter=tuple[ToolExample, ...])
    required_capabilities: Capability = Capability.NONE
    required_permissions: Permission = Permission.NONE
    deprecated: bool = False
    experimental: bool = False
    requires_confirmation: bool = False
    platforms: tuple[str, ...] = field(default=(), converter=tuple[str, ...])
    dependencies: tuple[str, ...] = field(default=(), converter=tuple[str, ...])
    estimated_time_ms: int | None = None
    max_input_bytes: int | None = None
