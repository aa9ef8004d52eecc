"""Which commands there are: a new one is added to this list."""

from __future__ import annotations

from punie.application.turns.commands.command import SlashCommand
from punie.application.turns.commands.history import ClearCommand, CompactCommand
from punie.application.turns.commands.model import ModelCommand
from punie.application.turns.commands.own import InitCommand, ModeCommand, ToolsCommand, UsageCommand

OWN_COMMANDS: tuple[SlashCommand, ...] = (
    CompactCommand(),
    ClearCommand(),
    ModelCommand(),
    ModeCommand(),
    ToolsCommand(),
    UsageCommand(),
    InitCommand(),
)
"""In the order in which a client lists them."""
