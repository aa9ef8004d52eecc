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
from punie.ports.engine import Engine
from punie.ports.peer import Peer


def _guard(spec: SessionSpec) -> LocalPathGuard:
    return LocalPathGuard(spec.roots, spec.cwd)


def _local(
    spec: SessionSpec, guard: LocalPathGuard, terminals: LocalTerminals, shell: ShellInfo, log: logging.Logger
) -> LocalServices:
    return LocalServices(
        workspace=LocalWorkspace(guard),
        ledger=TerminalLedger(terminals, log),
        tree=LocalFileTree(guard, spec.roots),
        repository=DulwichRepository(spec.cwd, spec.roots),
        shell=shell,
    )


def _client_ledger(peer: Peer, log: logging.Logger) -> TerminalLedger | None:
    return None if peer.terminals is None else TerminalLedger(peer.terminals, log)


def _toolbox(
    session_id: str,
    peer: Peer,
    settings: Settings,
    validator: JsonSchemaRsValidator,
    clock: LocalClock,
    assemble: AssembleTools,
    log: logging.Logger,
) -> Toolbox:
    discover = DiscoverTools(session_id, peer.capabilities, peer.catalog, validator, clock, settings.local_tools, log)
    return Toolbox(discover, assemble, settings.disabled_tools)


def _desk(  # noqa: PLR0913, PLR0917 - one argument a dependency
    session_id: str,
    spec: SessionSpec,
    peer: Peer,
    settings: Settings,
    toolbox: Toolbox,
    guard: LocalPathGuard,
    validator: JsonSchemaRsValidator,
    clock: LocalClock,
    log: logging.Logger,
) -> ToolDesk:
    return ToolDesk(
        session_id=session_id,
        cwd=spec.cwd,
        roots=spec.roots,
        toolbox=toolbox,
        guard=guard,
        validator=validator,
        broker=peer.broker,
        events=peer.events,
        clock=clock,
        limits=settings.limits,
        log=log,
    )


def _session(  # noqa: PLR0913, PLR0917 - one argument a dependency
    session_id: str,
    spec: SessionSpec,
    settings: Settings,
    desk: ToolDesk,
    engine: Engine,
    guard: LocalPathGuard,
    local: LocalServices,
    client_ledger: TerminalLedger | None,
    log: logging.Logger,
) -> LiveSession:
    return LiveSession(
        id=session_id,
        desk=desk,
        engine=engine.open(session_id),
        instructions=Instructions(spec.cwd, LocalProjectNotes(guard, spec.cwd)),
        ledgers=(local.ledger,) if client_ledger is None else (client_ledger, local.ledger),
        turn_limits=settings.turn_limits,
        log=log,
    )


class SessionContainer(containers.DeclarativeContainer):
    """Everything of one session; lives as long as it. `lifecycle` is entered in order and left in reverse.

    Each provider calls a function above, whose arguments the type checker sees; a chain of attribute providers would
    be copied for every session as well.
    """

    session_id = providers.Dependency(instance_of=str)
    spec = providers.Dependency(instance_of=SessionSpec)
    peer = providers.Dependency(instance_of=Peer)
    settings = providers.Dependency(instance_of=Settings)
    engine = providers.Dependency(instance_of=Engine)
    shell = providers.Dependency(instance_of=ShellInfo)
    log = providers.Dependency(instance_of=logging.Logger)

    clock = providers.Singleton(LocalClock)
    validator = providers.Singleton(JsonSchemaRsValidator)
    guard = providers.Singleton(_guard, spec)
    terminals = providers.Singleton(LocalTerminals)
    local = providers.Singleton(_local, spec, guard, terminals, shell, log)
    client_ledger = providers.Singleton(_client_ledger, peer, log)
    assemble = providers.Singleton(AssembleTools, session_id, peer, local, client_ledger, log)
    toolbox = providers.Singleton(_toolbox, session_id, peer, settings, validator, clock, assemble, log)
    desk = providers.Singleton(_desk, session_id, spec, peer, settings, toolbox, guard, validator, clock, log)
    session = providers.Singleton(_session, session_id, spec, settings, desk, engine, guard, local, client_ledger, log)
    lifecycle = providers.List(terminals, session)


class ProcessContainer(containers.DeclarativeContainer):
    """What all sessions of the process share, as values; lives as long as the process."""

    shell = providers.Dependency(instance_of=ShellInfo)
    log = providers.Dependency(instance_of=logging.Logger)
    session = providers.Factory(SessionContainer, shell=shell, log=log)
