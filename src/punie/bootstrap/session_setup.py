"""The values from which a session is built: the decisions about it, and what its process shares with all sessions."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from attrs import frozen

from punie.application.desk.approvals import Approvals
from punie.application.tools.terminals.get_shell_info import ShellInfo
from punie.application.turns.conversation import Conversation
from punie.bootstrap.plugins import PlugIns
from punie.bootstrap.settings.settings import Settings
from punie.domain.servers.server import ServerConfig
from punie.domain.session.session import SessionSpec
from punie.ports.servers import ServerApprovals, ServerListings
from punie.ports.sessions import UsageLedger
from shellsight.surroundings import ShellParser

if TYPE_CHECKING:
    from punie.bootstrap.hook_files import FoundHooks


@frozen
class SessionSetup:
    """Everything that is decided about a session before its parts are built; lives as long as the session.

    `doubts` are sentences for a person about files and settings that are not as they were meant.
    """

    id: str
    spec: SessionSpec
    settings: Settings
    conversation: Conversation
    servers: tuple[ServerConfig, ...]
    plug_ins: PlugIns
    log: logging.Logger
    hooks: tuple[FoundHooks, ...] = ()
    doubts: tuple[str, ...] = ()


@frozen
class Shared:
    """Values that all sessions of a process share; lives as long as the process."""

    shell: ShellInfo
    parser: ShellParser
    usage_ledger: UsageLedger
    approvals: Approvals
    listings: ServerListings
    server_approvals: ServerApprovals
