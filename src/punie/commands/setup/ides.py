"""The IDEs that we can be entered into: where each keeps its agents, what an entry is, what to switch on there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import field, frozen

from punie.bootstrap.settings.permissions import home_of
from punie.commands.setup.installation import is_wsl

DEFAULT_NAME = "punie"


@frozen
class Ide:
    """One IDE; a constant of the process. `fields` are what its entries have beside command, args and env."""

    key: str
    label: str
    file: Callable[[Mapping[str, str]], Path]
    hints: tuple[str, ...]
    not_under_wsl: bool = False
    fields: Mapping[str, object] = field(factory=dict[str, object])

    def entry(self, command: str, args: list[str]) -> Mapping[str, object]:
        """What the file has to say of us."""
        return {**self.fields, "command": command, "args": args, "env": {}}

    def next_steps(self, name: str, environ: Mapping[str, str]) -> tuple[str, ...]:
        """What the user does next, a sentence or two a line."""
        steps = tuple(hint.format(name=name) for hint in self.hints)
        if self.not_under_wsl and is_wsl(environ):
            return (
                *steps,
                f"This is WSL, where {self.label} start no agents: install Punie on Windows, and run this there.",
            )
        return steps


def jetbrains_file(environ: Mapping[str, str]) -> Path:
    """`~/.jetbrains/acp.json`, which all of their IDEs read."""
    return Path(home_of(environ)) / ".jetbrains" / "acp.json"


def zed_file(environ: Mapping[str, str]) -> Path:
    """`zed/settings.json` below `XDG_CONFIG_HOME` or `~/.config`; on Windows `Zed` below `APPDATA`."""
    home = Path(home_of(environ))
    if sys.platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming") / "Zed" / "settings.json"
    named = Path(environ.get("XDG_CONFIG_HOME", ""))
    return (named if named.is_absolute() else home / ".config") / "zed" / "settings.json"


JETBRAINS = Ide(
    "jetbrains",
    "JetBrains IDEs",
    jetbrains_file,
    (
        "In the IDE: open AI Chat and choose {name} in its list of agents.",
        'There, switch on "Pass IntelliJ MCP server" and "Pass custom MCP servers": they give Punie the IDE\'s tools.',
    ),
    not_under_wsl=True,
)
ZED = Ide(
    "zed",
    "Zed",
    zed_file,
    ("In Zed: open the agent panel, press + and choose {name}. Your context servers are passed on by themselves.",),
    fields={"type": "custom"},
)
IDES = (JETBRAINS, ZED)


def ide_named(key: str) -> Ide:
    """The IDE of that key. Raises `KeyError`."""
    return {ide.key: ide for ide in IDES}[key]
