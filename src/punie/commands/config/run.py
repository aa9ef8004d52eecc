"""`punie config`: which settings are in force here, where each came from, and what they mean."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from punie.adapters.console.output import Pipe
from punie.bootstrap.settings.keys import CALL_BOUNDS, KEYS, PER_TOOL, RULES, Key, key_of
from punie.bootstrap.settings.settings import Traced, trace_settings, variable_of
from punie.bootstrap.settings.trust import stored_trust
from punie.commands.config.shown import explain_json, explain_key, explain_text, show_json, show_toml, shown
from punie.commands.flags import settings_flags
from punie.commands.running import command_environ, directory_of, start_logging, wrong
from punie.domain.errors import SettingsError
from punie.domain.values.display import one_line

MOST_NEAR = 3


@frozen
class ConfigMode:
    """One run of `punie config`; each method gives the exit code. `flags` are as `load_settings` takes them."""

    environ: Mapping[str, str]
    flags: Mapping[str, str | None]
    cwd: str
    as_json: bool
    out: Pipe

    def show(self, *, sources: bool) -> int:
        """Every setting with its value."""
        traced = self._traced()
        if self.as_json:
            self.out.write(show_json(traced, self.environ, self.cwd) + "\n")
        else:
            self.out.write(show_toml(traced, self.environ, self.cwd, sources=sources))
        return 0

    def explain(self, name: str) -> int:
        """One setting, by its dotted name or its variable's."""
        key = _named(name)
        if key is None:
            return wrong(_unknown(name))
        try:
            traced = self._traced()
        except SettingsError as error:
            self.out.write("" if self.as_json else explain_key(key))
            return wrong(str(error))
        one = shown(key, traced)
        self.out.write(explain_json(one, traced) + "\n" if self.as_json else explain_text(one, traced))
        return 0

    def _traced(self) -> Traced:
        trusted = stored_trust(self.environ, start_logging(self.environ, None))
        return trace_settings(self.environ, self.flags, self.cwd, trusted)


def _named(name: str) -> Key[Any] | None:
    if name == RULES.name:
        return RULES
    by_variable = {variable_of(key): key for key in KEYS}
    return key_of(by_variable.get(name, name))


def _unknown(name: str) -> str:
    shown_name = one_line(name, 80)
    group = [key for key in (*KEYS, RULES.name) if key.startswith(f"{name.rstrip('.')}.")]
    if group:
        return f"{shown_name} is a group of settings. Name one of them: {', '.join(group)}"
    if name.startswith(PER_TOOL):
        return f"{shown_name} is no setting. Of a single tool there are {', '.join(CALL_BOUNDS)}"
    near = difflib.get_close_matches(name, (*KEYS, RULES.name), n=MOST_NEAR, cutoff=0.4)
    same = [key for key in KEYS if key.rpartition(".")[2] == name.rpartition(".")[2]]
    named = list(dict.fromkeys((*same, *near)))[:MOST_NEAR]
    hint = f"Did you mean {' or '.join(named)}?" if named else "punie config show lists them all."
    return f"{shown_name} is no setting of this version. {hint}"


def run_config(
    *, as_json: bool, cwd: str, model: str | None, mode: str | None, key: str | None = None, sources: bool = False
) -> int:
    """Explain that setting, or show all; returns the exit code."""
    flags = settings_flags(model=model, mode=mode)
    config = ConfigMode(command_environ(), flags, str(directory_of(cwd)), as_json, Pipe(sys.stdout))
    try:
        return config.show(sources=sources) if key is None else config.explain(key)
    except SettingsError as error:
        return wrong(str(error))
