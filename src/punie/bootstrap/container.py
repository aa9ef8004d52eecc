"""What is built for a session, and from what (DESIGN.md section 5).

dependency-injector builds objects and owns no lifetime: synchronous providers only, values handed in, never a provider
of another container (that leaks every session). Constructors neither wait nor open anything.
"""

from __future__ import annotations

import logging

from dependency_injector import containers, providers

from punie.adapters.git.repository import DulwichRepository
from punie.adapters.local.clock import LocalClock
from punie.adapters.local.file_tree import LocalFileTree
from punie.adapters.local.path_guard import LocalPathGuard
from punie.adapters.local.project_notes import LocalProjectNotes
from punie.adapters.local.terminals import LocalTerminals
from punie.adapters.local.workspace import LocalWorkspace
from punie.adapters.schema.argument_validator import JsonSchemaRsValidator
from punie.application.assemble_tools import AssembleTools, LocalServices
from punie.application.discover_tools import DiscoverTools
from punie.application.instructions import Instructions
from punie.application.live_session import LiveSession
from punie.application.terminal_ledger import TerminalLedger
from punie.application.tool_desk import ToolDesk
from punie.application.toolbox import Toolbox
from punie.application.tools.shell_info import ShellInfo
from punie.bootstrap.settings import Settings
from punie.domain.session import SessionSpec
from punie.ports.engine import Engine, EngineSession
from punie.ports.peer import Peer


def _ledgers(*ledgers: TerminalLedger | None) -> tuple[TerminalLedger, ...]:
    return tuple(ledger for ledger in ledgers if ledger is not None)


def _client_ledger(peer: Peer, log: logging.Logger) -> TerminalLedger | None:
    return None if peer.terminals is None else TerminalLedger(peer.terminals, log)


def _open(engine: Engine, session_id: str) -> EngineSession:
    return engine.open(session_id)


class SessionContainer(containers.DeclarativeContainer):
    """Everything of one session; lives as long as it. `lifecycle` is entered in order and left in reverse."""

    session_id = providers.Dependency(instance_of=str)
    spec = providers.Dependency(instance_of=SessionSpec)
    peer = providers.Dependency(instance_of=Peer)
    settings = providers.Dependency(instance_of=Settings)
    engine = providers.Dependency(instance_of=Engine)
    shell = providers.Dependency(instance_of=ShellInfo)
    log = providers.Dependency(instance_of=logging.Logger)

    clock = providers.Singleton(LocalClock)
    validator = providers.Singleton(JsonSchemaRsValidator)
    guard = providers.Singleton(LocalPathGuard, spec.provided.roots, spec.provided.cwd)
    notes = providers.Singleton(LocalProjectNotes, guard, spec.provided.cwd)
    terminals = providers.Singleton(LocalTerminals)
    local_ledger = providers.Singleton(TerminalLedger, terminals, log)
    client_ledger = providers.Singleton(_client_ledger, peer, log)
    local = providers.Singleton(
        LocalServices,
        workspace=providers.Singleton(LocalWorkspace, guard),
        ledger=local_ledger,
        tree=providers.Singleton(LocalFileTree, guard, spec.provided.roots),
        repository=providers.Singleton(DulwichRepository, spec.provided.cwd, spec.provided.roots),
        shell=shell,
    )
    discover = providers.Singleton(
        DiscoverTools, session_id, peer.provided.capabilities, peer.provided.catalog, validator, clock,
        settings.provided.local_tools, log,
    )  # fmt: skip
    assemble = providers.Singleton(AssembleTools, session_id, peer, local, client_ledger, log)
    toolbox = providers.Singleton(Toolbox, discover, assemble, settings.provided.disabled_tools)
    desk = providers.Singleton(
        ToolDesk,
        session_id=session_id,
        cwd=spec.provided.cwd,
        roots=spec.provided.roots,
        toolbox=toolbox,
        guard=guard,
        validator=validator,
        broker=peer.provided.broker,
        events=peer.provided.events,
        clock=clock,
        limits=settings.provided.limits,
        log=log,
    )
    session = providers.Singleton(
        LiveSession,
        id=session_id,
        desk=desk,
        engine=providers.Singleton(_open, engine, session_id),
        instructions=providers.Singleton(Instructions, spec.provided.cwd, notes),
        ledgers=providers.Singleton(_ledgers, client_ledger, local_ledger),
        turn_limits=settings.provided.turn_limits,
        log=log,
    )
    lifecycle = providers.List(terminals, session)


class ProcessContainer(containers.DeclarativeContainer):
    """What all sessions of the process share, as values; lives as long as the process."""

    shell = providers.Dependency(instance_of=ShellInfo)
    log = providers.Dependency(instance_of=logging.Logger)
    session = providers.Factory(SessionContainer, shell=shell, log=log)
