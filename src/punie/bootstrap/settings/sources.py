"""The sources of settings: the user's file, the project's, `PUNIE_*` and flags; a later source wins.

Until its content is trusted, a project's file may only make settings stricter; its other values are left out with a
warning. Rules of permissions add up. A source that cannot be understood raises `SettingsError`.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from attrs import evolve, field, frozen

from punie.application.offer.misnamed import misnamed, misspelt
from punie.bootstrap.settings.files import (
    SettingsFile,
    database_file,
    own_files,
    pipelines_folder,
    private_files,
    profiles_file,
    project_settings_file,
    read_settings_file,
    read_tables,
    skills_folder,
    state_dir,
    user_settings_file,
)
from punie.bootstrap.settings.keys import ADDS, KEYS, MODE, NEVER, RULES, Key, key_of, tool_and_bound, variable_of
from punie.bootstrap.settings.permissions import ParserOf, RuleSource, parse_flag, parse_rules
from punie.bootstrap.settings.settings import Settings
from punie.domain.errors import SettingsError
from punie.domain.permission.decisions import Policy
from punie.domain.permission.rules import Rule, Verdict
from punie.mechanics.home import home_of
from punie.mechanics.nearest import nearest

if TYPE_CHECKING:
    from pathlib import Path

    from punie.application.offer.profiles import Profile
    from shellsight.surroundings import ShellParser

_log = logging.getLogger("punie.settings")

Trusted: TypeAlias = Callable[[str, str], bool]
"""Whether a person trusted the project file at that path with that content's digest."""


@frozen
class LeftOut:
    """The values and rules of a project's file that count only once its content is trusted."""

    file: SettingsFile
    values: Mapping[str, object] = field(factory=dict[str, object])
    rules: tuple[Rule, ...] = ()


COMMAND_LINE = "the command line"

_RULE_FLAGS = {"permissions.allow": Verdict.ALLOW, "permissions.deny": Verdict.DENY}
"""Flags that may be repeated; their value is a JSON list of texts."""


_LISTS = frozenset({"tools.disabled", "tools.always"})
"""Settings that list tools."""


class Speaker(StrEnum):
    """The kinds of sources of a setting's value; a later one wins."""

    USER = "user"
    PROJECT = "project"
    VARIABLE = "variable"
    FLAG = "flag"


@frozen
class Said:
    """The value that one source gives a setting; `heard` is false where a project may not set it."""

    key: str
    value: object
    source: str
    speaker: Speaker
    heard: bool = True


@frozen
class Traced:
    """The settings, and how they came about: `said` is all that the sources said, the weakest first."""

    settings: Settings
    said: tuple[Said, ...]
    left_out: LeftOut
    trusted: bool


def load_settings(
    environ: Mapping[str, str],
    flags: Mapping[str, str | None],
    cwd: str,
    trusted: Trusted = lambda _path, _digest: False,
    parser: ParserOf | None = None,
) -> Settings:
    """The settings for a session in `cwd`. `flags` are the command line's, by dotted key, None where not given.

    `trusted` is called only for a project's file that would loosen something; `parser` makes the parser for examples of
    rules.
    """
    traced = trace_settings(environ, flags, cwd, trusted, parser)
    _warn(traced)
    return traced.settings


def trace_settings(
    environ: Mapping[str, str],
    flags: Mapping[str, str | None],
    cwd: str,
    trusted: Trusted = lambda _path, _digest: False,
    parser: ParserOf | None = None,
) -> Traced:
    """As `load_settings`, with the source of every value, and without a warning for values that are left out."""
    layers = _Layers(environ, parser)
    # The directory may be named through a link, and trust is about the file itself.
    left_out = layers.project(read_settings_file(project_settings_file(os.path.realpath(cwd))))
    loosens = bool(left_out.values or left_out.rules)
    trusts = loosens and trusted(left_out.file.path, left_out.file.digest)
    if trusts:
        layers.loosen(left_out)
    layers.variables(environ)
    layers.flags({key: value for key, value in flags.items() if value is not None})
    settings = _settings(layers.found)
    settings = evolve(
        settings,
        policy=Policy(settings[MODE], tuple(layers.rules), own_files(environ, cwd), private_files(environ, cwd)),
        skills_folder=str(skills_folder(environ)),
        state_folder=str(state_dir(environ)),
        pipelines_folder=str(pipelines_folder(environ)),
        profiles=_own_profiles(profiles_file(environ)),
        doubts=(*misspelt(environ, KEYS), *misnamed(_named_tools(layers))),
    )
    return Traced(settings, tuple(layers.said), left_out, trusts)


def _named_tools(layers: _Layers) -> Iterator[tuple[str, str]]:
    """The tools that rules and settings name, each after its source."""
    yield from ((rule.origin, rule.tool) for rule in layers.rules if rule.server is None)
    for said in layers.said:
        tool, bounded = tool_and_bound(said.key)
        listed = cast("tuple[str, ...]", said.value) if said.key in _LISTS else (tool,) if bounded else ()
        yield from ((said.source, name) for name in listed)


def _own_profiles(path: Path) -> tuple[Profile, ...]:
    tables, _ = read_tables(path)
    if not tables:
        return ()
    from punie.application.offer.profiles import users_profiles  # hardly any user has the file

    return users_profiles(tables, str(path))


def project_gains(environ: Mapping[str, str], cwd: str, parser: ParserOf | None = None) -> LeftOut:
    """The values and rules that trusting the project's file in `cwd` would add. Raises `SettingsError`."""
    layers = _Layers(environ, parser)
    return layers.project(read_settings_file(project_settings_file(cwd)))


class _Layers:
    """The values read so far, from the weakest source, the user's own file; lives as long as one loading."""

    def __init__(self, environ: Mapping[str, str], parser: ParserOf | None) -> None:
        self.found: dict[str, tuple[object, str]] = {}
        self.said: list[Said] = []
        self._home = home_of(environ)
        self._parser = parser or _bash_parser
        file = read_settings_file(user_settings_file(environ))
        self.rules = [*self._rules(file, "user")]
        self._take(file.values, file.path, Speaker.USER)

    def project(self, file: SettingsFile) -> LeftOut:
        """Take the values that make the session stricter; returns the others."""
        rules = self._rules(file, "project")
        self.rules += [rule for rule in rules if not rule.allows]
        given = _parsed(file.values, file.path)
        before = dict(self.found)
        left_out: dict[str, object] = {}
        for key, value in given.items():
            merged, heard = _tightened(key_named(key, file.path), value, before)
            self.said.append(Said(key, value, file.path, Speaker.PROJECT, heard))
            if heard:
                self.found[key] = (merged, file.path)
            elif key_named(key, file.path).project is not NEVER:
                left_out[key] = file.values[key]
        return LeftOut(file, left_out, tuple(rule for rule in rules if rule.allows))

    def loosen(self, left_out: LeftOut) -> None:
        """Take the values of a trusted file that were left out."""
        self.rules += left_out.rules
        self.said = [one for one in self.said if one.heard or one.key not in left_out.values]
        self._take(left_out.values, left_out.file.path, Speaker.PROJECT)

    def variables(self, environ: Mapping[str, str]) -> None:
        for key in KEYS:
            if environ.get(variable_of(key)):
                self._take({key: environ[variable_of(key)]}, variable_of(key), Speaker.VARIABLE)

    def flags(self, flags: Mapping[str, str]) -> None:
        source = RuleSource("command-line", COMMAND_LINE, self._home, self._parser)
        for key, decision in _RULE_FLAGS.items():
            texts = cast("list[str]", json.loads(flags.get(key, "[]")))
            for number, text in enumerate(texts, 1):
                self.rules += parse_flag(decision, text, number, source)
        values = {key: value for key, value in flags.items() if key not in _RULE_FLAGS}
        self._take(values, COMMAND_LINE, Speaker.FLAG)

    def _take(self, values: Mapping[str, object], source: str, speaker: Speaker) -> None:
        for key, value in _parsed(values, source).items():
            self.found[key] = (value, source)
            self.said.append(Said(key, value, source, speaker))

    def _rules(self, file: SettingsFile, label: str) -> tuple[Rule, ...]:
        if RULES.name not in file.values:
            return ()
        return parse_rules(file.values[RULES.name], RuleSource(label, file.path, self._home, self._parser))


def _warn(traced: Traced) -> None:
    left_out = traced.left_out
    for said in traced.said:
        if not said.heard and said.key not in left_out.values:
            _log.warning("%s: %s is left out: it is for your own settings alone", said.source, said.key)
    if traced.trusted:
        return
    for what in (*left_out.values, *(f"the allow rule {rule.id}" for rule in left_out.rules)):
        _log.warning(
            "%s: %s is left out: a project's settings may only tighten until you trust them (punie permissions trust)",
            left_out.file.path, what,
        )  # fmt: skip


def stored_trust(environ: Mapping[str, str], log: logging.Logger) -> Trusted:
    """The trust that the user's state remembers; the state is not opened before a file is asked about."""

    def trusted(path: str, digest: str) -> bool:
        from punie.adapters.storage.decisions import SqliteTrustStore
        from punie.adapters.storage.state_file import StateFile

        return SqliteTrustStore(StateFile(database_file(environ), log)).trusts(path, digest)

    return trusted


def _bash_parser() -> ShellParser:
    from shellsight.parser.tree_sitter_bash import TreeSitterBashParser

    return TreeSitterBashParser()


def key_named(name: str, source: str) -> Key[Any]:
    """The setting with that name. Raises `SettingsError` where there is none."""
    key = key_of(name)
    if key is None:
        near = " or ".join(nearest(name, KEYS))
        hint = f" (did you mean {near}?)" if near else ""
        raise SettingsError(source, f"{name} is not a setting of this version{hint}")
    return key


def _parsed(values: Mapping[str, object], source: str) -> dict[str, object]:
    """The values, read; rules are read elsewhere."""
    parsed: dict[str, object] = {}
    for name, value in values.items():
        if name == RULES.name:
            continue
        try:
            parsed[name] = key_named(name, source).kind.parse(value)
        except ValueError as error:
            raise SettingsError(source, f"{name}: {error}") from error
    return parsed


def _tightened(key: Key[Any], value: object, before: Mapping[str, tuple[object, str]]) -> tuple[object, bool]:
    """The setting's value with what a project says of it, and whether that counts without trust."""
    settings = _settings(before)
    tool, bound = tool_and_bound(key.name)
    now = getattr(settings.limits.of(tool), bound) if tool else settings[key]  # a tool's bound may be said nowhere
    if key.project is ADDS:
        return (*now, *cast("tuple[object, ...]", value)), True
    return value, key.project.stricter is not None and key.project.stricter(value, now)


def _settings(found: Mapping[str, tuple[object, str]]) -> Settings:
    values = {key: value for key, (value, _) in found.items()}
    origins = {key: source for key, (_, source) in found.items()}
    return Settings(MappingProxyType(values), MappingProxyType(origins))
