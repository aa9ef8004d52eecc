"""The settings of one session: the user's file, the project's, `PUNIE_*`, flags, in rising strength.

The project's file may only tighten until its content is trusted: what would loosen is left out with a warning. Rules of
permissions add up. Anything that cannot be understood raises `SettingsError`: no session starts on half-read settings.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from attrs import evolve, field, fields, frozen

from punie.bootstrap.model_context import context_tokens, known_context_tokens
from punie.bootstrap.own_files import own_files
from punie.bootstrap.permission_settings import (
    ParserOf,
    RuleSource,
    home_of,
    parse_flag,
    parse_mode,
    parse_rules,
)
from punie.bootstrap.settings_files import (
    SettingsFile,
    project_settings_file,
    read_settings_file,
    skills_folder,
    user_settings_file,
)
from punie.bootstrap.settings_values import (
    Sandbox,
    parse_disclosure,
    parse_effort,
    parse_local,
    parse_models,
    parse_names,
    parse_positive,
    parse_registry,
    parse_sandbox,
    parse_share,
    parse_text,
    parse_whole,
    parse_yes,
)
from punie.domain.decisions import Policy
from punie.domain.disclosure import DEFAULT_SHARE, DisclosureForm, DisclosurePolicy
from punie.domain.discovery import LocalTools
from punie.domain.errors import SettingsError
from punie.domain.limits import CallLimits, Limits
from punie.domain.model_choice import Effort
from punie.domain.modes import Mode, Verdict
from punie.domain.rules import Rule
from punie.domain.turn import TurnLimits

if TYPE_CHECKING:
    from punie.ports.shell_parser import ShellParser

_log = logging.getLogger("punie.settings")


@frozen
class Settings:
    """What is in force, and where each value came from (`origins`, by dotted key); lives as long as a session."""

    model: str | None = None
    models: tuple[str, ...] = ()
    effort: Effort | None = None
    local_tools: LocalTools = LocalTools.AUTO
    disabled_tools: frozenset[str] = frozenset()
    limits: Limits = field(factory=Limits)
    turn_limits: TurnLimits = field(factory=TurnLimits)
    origins: Mapping[str, str] = field(factory=lambda: MappingProxyType({}))
    policy: Policy = field(factory=Policy)
    sandbox: Sandbox = Sandbox.NONE
    sandbox_network: bool = False
    disclosure: DisclosurePolicy = field(factory=DisclosurePolicy)
    registry: str | None = None
    keep_sessions: bool = True
    skills_folder: str | None = None
    """Where the user's own skills are."""

    context_tokens: int | None = None
    """How much the model's context holds: as the settings say, else by its name; None where neither tells."""


Trusted: TypeAlias = Callable[[str, str], bool]
"""Whether a person trusted the project file at that path with that content's digest."""


@frozen
class LeftOut:
    """What a project's file would loosen if its content were trusted; empty where it only tightens."""

    file: SettingsFile
    values: Mapping[str, object] = field(factory=dict[str, object])
    rules: tuple[Rule, ...] = ()


def _nobody(_path: str, _digest: str) -> bool:
    return False


_KEYS: Mapping[str, Callable[[object], object]] = {
    "model": parse_text,
    "models": parse_models,
    "effort": parse_effort,
    "context_tokens": parse_whole,
    "tools.local": parse_local,
    "tools.disabled": parse_names,
    "tools.disclosure": parse_disclosure,
    "tools.disclosure_share": parse_share,
    "tools.always": parse_names,
    "limits.time_s": parse_positive,
    "limits.output_bytes": parse_whole,
    "limits.input_bytes": parse_whole,
    "limits.files_touched": parse_whole,
    "limits.memory_mb": parse_whole,
    "limits.concurrent_calls": parse_whole,
    "turn.max_requests": parse_whole,
    "turn.compact_share": parse_share,
    "permissions.mode": parse_mode,
    "permissions.sandbox": parse_sandbox,
    "permissions.sandbox_network": parse_yes,
    "servers.registry": parse_registry,
    "sessions.keep": parse_yes,
}
_RULES = "permissions.rules"
_RULE_FLAGS = {"permissions.allow": Verdict.ALLOW, "permissions.deny": Verdict.DENY}
"""Flags that may be given several times: their value is a JSON list of texts."""

_PER_TOOL = "limits.tools."
_CALL_BOUNDS = tuple(bound.name for bound in fields(CallLimits))
"""Those bounds that a single tool may have for itself."""

_LOOSENESS = (LocalTools.NEVER, LocalTools.AUTO, LocalTools.ALWAYS)


def variable_of(key: str) -> str:
    """The environment variable of a setting: `tools.local` is `PUNIE_TOOLS_LOCAL`."""
    return f"PUNIE_{key.upper().replace('.', '_')}"


def load_settings(
    environ: Mapping[str, str],
    flags: Mapping[str, str | None],
    cwd: str,
    trusted: Trusted = _nobody,
    parser: ParserOf | None = None,
) -> Settings:
    """The settings for a session in `cwd`. `flags` are the command line's, by dotted key, None where not given.

    `trusted` is asked only about a project's file that would loosen; `parser` gives what reads the examples of rules.
    """
    layers = _Layers(home_of(environ), parser or _bash_parser)
    layers.user(read_settings_file(user_settings_file(environ)))
    # The same directory may be named through a link: what was trusted is the file itself.
    left_out = layers.project(read_settings_file(project_settings_file(os.path.realpath(cwd))))
    if (left_out.values or left_out.rules) and trusted(left_out.file.path, left_out.file.digest):
        layers.loosen(left_out)
    else:
        _warn(left_out)
    for key in _KEYS:
        if environ.get(variable_of(key)):
            _take(layers.found, {key: environ[variable_of(key)]}, variable_of(key))
    layers.flags({key: value for key, value in flags.items() if value is not None})
    return evolve(layers.settings(own_files(environ, cwd)), skills_folder=str(skills_folder(environ)))


def project_gains(environ: Mapping[str, str], cwd: str, parser: ParserOf | None = None) -> LeftOut:
    """What trusting the project's file in `cwd` would loosen, as it is now. Raises `SettingsError`."""
    layers = _Layers(home_of(environ), parser or _bash_parser)
    layers.user(read_settings_file(user_settings_file(environ)))
    return layers.project(read_settings_file(project_settings_file(cwd)))


class _Layers:
    """Settings on their way, from the weakest source to the strongest; lives as long as one loading."""

    def __init__(self, home: str, parser: ParserOf) -> None:
        self.found: dict[str, tuple[object, str]] = {}
        self.rules: list[Rule] = []
        self._home = home
        self._parser = parser

    def user(self, file: SettingsFile) -> None:
        self.rules += self._rules(file, "user")
        _take(self.found, _plain(file.values), file.path)

    def project(self, file: SettingsFile) -> LeftOut:
        """Take what makes the session stricter; gives the rest."""
        rules = self._rules(file, "project")
        self.rules += [rule for rule in rules if not rule.allows]
        values = _tighten(self.found, _plain(file.values), file.path)
        return LeftOut(file, values, tuple(rule for rule in rules if rule.allows))

    def loosen(self, left_out: LeftOut) -> None:
        """Take what only trust lets in."""
        self.rules += left_out.rules
        _take(self.found, left_out.values, left_out.file.path)

    def flags(self, flags: Mapping[str, str]) -> None:
        source = RuleSource("command-line", "the command line", self._home, self._parser)
        for key, decision in _RULE_FLAGS.items():
            texts = cast("list[str]", json.loads(flags.get(key, "[]")))
            for number, text in enumerate(texts, 1):
                self.rules += parse_flag(decision, text, number, source)
        _take(self.found, {key: value for key, value in flags.items() if key not in _RULE_FLAGS}, "the command line")

    def settings(self, protected: tuple[str, ...]) -> Settings:
        settings = _settings(self.found)
        return evolve(settings, policy=Policy(settings.policy.mode, tuple(self.rules), protected))

    def _rules(self, file: SettingsFile, label: str) -> tuple[Rule, ...]:
        if _RULES not in file.values:
            return ()
        return parse_rules(file.values[_RULES], RuleSource(label, file.path, self._home, self._parser))


def _plain(values: Mapping[str, object]) -> Mapping[str, object]:
    return {key: value for key, value in values.items() if key != _RULES}


def _warn(left_out: LeftOut) -> None:
    for what in (*left_out.values, *(f"the allow rule {rule.id}" for rule in left_out.rules)):
        _log.warning(
            "%s: %s is left out: a project's settings may only tighten until you trust them (punie permissions trust)",
            left_out.file.path, what,
        )  # fmt: skip


def _bash_parser() -> ShellParser:
    from punie.adapters.shell.tree_sitter_bash import TreeSitterBashParser

    return TreeSitterBashParser()


def _parser(key: str, source: str) -> Callable[[object], object]:
    tool, bound = _tool_and_bound(key)
    parse = _KEYS.get(f"limits.{bound}" if tool else key)
    if parse is None or (tool and bound not in _CALL_BOUNDS):
        raise SettingsError(source, f"{key} is not a setting of this version")
    return parse


def _tool_and_bound(key: str) -> tuple[str, str]:
    """The tool and the bound of `limits.tools.NAME.BOUND`; no tool for any other key."""
    tool, _, bound = key.removeprefix(_PER_TOOL).rpartition(".") if key.startswith(_PER_TOOL) else ("", "", "")
    return tool, bound


def _take(found: dict[str, tuple[object, str]], values: Mapping[str, object], source: str) -> None:
    for key, value in values.items():
        try:
            found[key] = (_parser(key, source)(value), source)
        except ValueError as error:
            raise SettingsError(source, f"{key}: {error}") from error


def _tighten(found: dict[str, tuple[object, str]], values: Mapping[str, object], source: str) -> Mapping[str, object]:
    """Take from a project's file what makes the session stricter; gives the rest."""
    left_out: dict[str, object] = {}
    given: dict[str, tuple[object, str]] = {}
    _take(given, values, source)
    before = _settings(found)
    for key, (value, _) in given.items():
        if key == "tools.disabled":
            found[key] = ((*before.disabled_tools, *parse_names(value)), source)
        elif _is_stricter(key, value, before):
            found[key] = (value, source)
        else:
            left_out[key] = values[key]
    return left_out


def _is_stricter(key: str, value: object, before: Settings) -> bool:
    if key == "permissions.mode":
        return parse_mode(value).looseness < before.policy.mode.looseness
    if key == "permissions.sandbox":
        return parse_sandbox(value) is Sandbox.BUBBLEWRAP
    if key in {"permissions.sandbox_network", "sessions.keep"}:
        return not parse_yes(value)
    if key == "tools.local":
        return _LOOSENESS.index(parse_local(value)) < _LOOSENESS.index(before.local_tools)
    now = _bound_of(key, before)
    return now is not None and parse_positive(value) < now


def _bound_of(key: str, settings: Settings) -> float | None:
    """The number in force for a key of bounds; None for a key that has none."""
    tool, bound = _tool_and_bound(key)
    limits = settings.limits.of(tool) if tool else settings.limits.general
    in_force: dict[str, float] = {f"limits.{name}": getattr(limits, name) for name in _CALL_BOUNDS}
    in_force["limits.concurrent_calls"] = settings.limits.concurrent_calls
    in_force["turn.max_requests"] = settings.turn_limits.max_requests
    return in_force.get(f"limits.{bound}" if tool else key)


def _settings(found: Mapping[str, tuple[object, str]]) -> Settings:
    values = {key: value for key, (value, _) in found.items()}
    bounds = {name: values[f"limits.{name}"] for name in _CALL_BOUNDS if f"limits.{name}" in values}
    general = CallLimits(**cast("dict[str, Any]", bounds))  # each was parsed as its key says
    by_tool: dict[str, dict[str, float]] = {}
    if "limits.output_bytes" in values:
        by_tool["read_file"] = {"output_bytes": general.output_bytes}  # said in so many words, it holds for files too
    for key, value in values.items():
        tool, bound = _tool_and_bound(key)
        if tool:
            by_tool.setdefault(tool, {})[bound] = parse_positive(value)
    given = values.get("model")
    model = given if isinstance(given, str) else None
    said = parse_whole(values["context_tokens"]) if "context_tokens" in values else None
    return Settings(
        model=model,
        models=parse_models(values.get("models", ())),
        effort=None if "effort" not in values else parse_effort(values["effort"]),
        local_tools=parse_local(values.get("tools.local", LocalTools.AUTO)),
        disabled_tools=frozenset(parse_names(values.get("tools.disabled", ()))),
        limits=Limits(
            general,
            MappingProxyType(by_tool),
            parse_whole(values.get("limits.concurrent_calls", Limits().concurrent_calls)),
        ),
        turn_limits=TurnLimits(
            parse_whole(values.get("turn.max_requests", TurnLimits().max_requests)),
            parse_share(values.get("turn.compact_share", TurnLimits().compact_share)),
        ),
        origins=MappingProxyType({key: source for key, (_, source) in found.items()}),
        policy=Policy(parse_mode(values.get("permissions.mode", Mode.ASK))),
        sandbox=parse_sandbox(values.get("permissions.sandbox", Sandbox.NONE)),
        sandbox_network=parse_yes(values.get("permissions.sandbox_network", False)),
        disclosure=DisclosurePolicy(
            parse_disclosure(values.get("tools.disclosure", DisclosureForm.AUTO)),
            parse_share(values.get("tools.disclosure_share", DEFAULT_SHARE)),
            parse_names(values.get("tools.always", ())),
            said or context_tokens(model),
        ),
        keep_sessions=parse_yes(values.get("sessions.keep", True)),
        registry=parse_registry(values["servers.registry"]) if "servers.registry" in values else None,
        context_tokens=said or known_context_tokens(model),
    )
