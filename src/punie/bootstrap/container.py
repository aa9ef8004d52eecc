"""What is built for a session, and from what (DESIGN.md section 5).

dependency-injector builds objects and owns no lifetime: synchronous providers only, values handed in, never a provider
of another container (that leaks every session). Constructors neither wait nor open anything.
"""

from __future__ import annotations

import logging
import secrets
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from dependency_injector import containers, providers

from punie.adapters.checks.python_checks import ProjectChecks
from punie.adapters.git.repository import DulwichRepository
from punie.adapters.local.clock import LocalClock
from punie.adapters.local.files.file_tree import LocalFileTree
from punie.adapters.local.files.output_store import LocalOutputStore
from punie.adapters.local.files.path_guard import LocalPathGuard
from punie.adapters.local.files.workspace import LocalWorkspace
from punie.adapters.local.programs.installed import is_installed
from punie.adapters.local.programs.sandbox import Bubblewrap
from punie.adapters.local.programs.terminals import LocalTerminals
from punie.adapters.local.project_notes import LocalProjectNotes
from punie.adapters.local.prompt_files import LocalPromptFiles
from punie.adapters.local.skill_folders import LocalSkills
from punie.adapters.schema.argument_validator import JsonSchemaRsValidator
from punie.application.desk.approvals import Approvals
from punie.application.desk.call import SessionContext
from punie.application.desk.command_review import CommandReview
from punie.application.desk.permission import SessionPermission
from punie.application.desk.questions import OpenQuestions
from punie.application.desk.session_desk import SessionDesk
from punie.application.offer.assemble import AssembleTools, KeptOutputs, LocalServices
from punie.application.offer.discover import DiscoverTools
from punie.application.offer.offered import Nowhere, OfferedTools
from punie.application.offer.plug_ins import PlugInTools
from punie.application.offer.registry import ToolRegistry
from punie.application.offer.toolbox import Toolbox
from punie.application.sessions.notices import SessionNotices
from punie.application.sessions.recorder import SessionRecorder
from punie.application.sessions.stored import StoredSessions
from punie.application.tools.ask_user import AskUser
from punie.application.tools.load_skill import LoadSkill
from punie.application.tools.session_tool import SessionTool
from punie.application.tools.shell_info import ShellInfo
from punie.application.tools.terminal_ledger import TerminalLedger
from punie.application.tools.update_plan import UpdatePlan
from punie.application.turns.commands.offered import OWN_COMMANDS
from punie.application.turns.commands.session_commands import SessionCommands
from punie.application.turns.instructions import Instructions
from punie.application.turns.live_session import LiveSession
from punie.bootstrap.continued import Continued
from punie.bootstrap.model_choices import EngineShelf, disclosure_of
from punie.bootstrap.plugins import PlugIns
from punie.bootstrap.session_pipelines import ComposedTools
from punie.bootstrap.session_servers import (
    ServerState,
    connections_of,
    server_registry_of,
    session_servers_of,
)
from punie.bootstrap.settings.settings import Settings
from punie.bootstrap.settings.values import Sandbox
from punie.domain.model.choice import DIRECT
from punie.domain.servers.server import ServerConfig
from punie.domain.session.session import SessionSpec
from punie.domain.tools.availability import Surroundings, capabilities_of
from punie.domain.tools.discovery import LocalTools
from punie.domain.values.paths import is_inside
from punie.ports.engine import Engine
from punie.ports.people import Peer
from punie.ports.sessions import UsageLedger
from shellsight.parser.port import ShellParser

if TYPE_CHECKING:
    from punie.application.servers.session_servers import SessionServers


def _guard(spec: SessionSpec) -> LocalPathGuard:
    return LocalPathGuard(spec.roots, spec.cwd)


def _local(
    spec: SessionSpec,
    peer: Peer,
    guard: LocalPathGuard,
    terminals: LocalTerminals,
    shell: ShellInfo,
    log: logging.Logger,
) -> LocalServices:
    return LocalServices(
        workspace=LocalWorkspace(guard),
        ledger=TerminalLedger(terminals if peer.shown is None else peer.shown(terminals), log),
        tree=LocalFileTree(guard, spec.roots),
        repository=DulwichRepository(spec.cwd, spec.roots),
        shell=shell,
        checks=ProjectChecks(spec.cwd),
    )


def _terminals(spec: SessionSpec, settings: Settings, outputs: LocalOutputStore) -> LocalTerminals:
    if settings.sandbox is Sandbox.NONE:
        return LocalTerminals(outputs)
    # The state is Punie's own business; where it lies inside a project, the box must not hide the project with it.
    hidden = tuple(
        path for path in settings.policy.protected if not any(is_inside(root, (path,)) for root in spec.roots)
    )
    box = Bubblewrap(spec.roots, str(Path.home()), hidden, network=settings.sandbox_network)
    return LocalTerminals(outputs, box)


def _outputs() -> LocalOutputStore:
    return LocalOutputStore(str(Path(tempfile.gettempdir()).resolve() / f"punie-{secrets.token_hex(16)}"))


def _assemble(
    session_id: str,
    peer: Peer,
    settings: Settings,
    local: LocalServices,
    client_ledger: TerminalLedger | None,
    outputs: LocalOutputStore,
    log: logging.Logger,
) -> AssembleTools:
    kept = KeptOutputs(outputs, LocalWorkspace(LocalPathGuard((outputs.folder,), outputs.folder)))
    reads_disk = settings.local_tools is not LocalTools.NEVER
    return AssembleTools(session_id, peer, local, client_ledger, log, kept=kept, reads_disk=reads_disk)


def _client_ledger(peer: Peer, log: logging.Logger) -> TerminalLedger | None:
    return None if peer.terminals is None else TerminalLedger(peer.terminals, log)


def _registry(peer: Peer, settings: Settings, local: LocalServices) -> ToolRegistry:
    capabilities = capabilities_of(peer.capabilities, settings.local_tools)
    return ToolRegistry(local, Surroundings(capabilities, sys.platform, is_installed))


def _skills(spec: SessionSpec, settings: Settings, log: logging.Logger) -> LocalSkills:
    return LocalSkills(settings.skills_folder, spec.roots, log)


def _toolbox(  # noqa: PLR0913, PLR0917 - one argument a dependency
    session_id: str,
    spec: SessionSpec,
    peer: Peer,
    settings: Settings,
    validator: JsonSchemaRsValidator,
    clock: LocalClock,
    assemble: AssembleTools,
    registry: ToolRegistry,
    plug_ins: PlugIns,
    servers: SessionServers | None,
    recorder: SessionRecorder,
    skills: LocalSkills,
    composed: ComposedTools,
    log: logging.Logger,
) -> Toolbox:
    discover = DiscoverTools(session_id, peer.capabilities, peer.catalog, validator, clock, settings.local_tools, log)
    plugged = PlugInTools(session_id, spec.cwd, plug_ins.providers, validator, log)

    asking = () if peer.elicitor is None else (AskUser(peer.elicitor),)
    own: tuple[SessionTool, ...] = (UpdatePlan(recorder), *asking)

    async def more() -> tuple[SessionTool, ...]:
        loading = (LoadSkill(skills),) if await skills.skills() else ()
        return (*own, *loading, *await plugged(), *(() if servers is None else await servers()))

    toolbox = Toolbox(discover, assemble, settings.disabled_tools, registry, more, composed)
    if servers is not None:
        servers.registry.hear = lambda _server: toolbox.mark_more_stale()
    return toolbox


def _permission(
    spec: SessionSpec,
    peer: Peer,
    settings: Settings,
    context: SessionContext,
    parser: ShellParser,
    approvals: Approvals,
) -> SessionPermission:
    del spec
    review = CommandReview(parser, context.guard, str(Path.home()))
    return SessionPermission(context, settings.policy, review, approvals, OpenQuestions(peer.broker))


def _recorder(peer: Peer, continued: Continued, clock: LocalClock, log: logging.Logger) -> SessionRecorder:
    return SessionRecorder(peer.events, clock, log, continued.kept)


def _context(
    session_id: str,
    spec: SessionSpec,
    settings: Settings,
    guard: LocalPathGuard,
    validator: JsonSchemaRsValidator,
    recorder: SessionRecorder,
    clock: LocalClock,
    log: logging.Logger,
) -> SessionContext:
    return SessionContext(session_id, spec.cwd, spec.roots, settings.limits, guard, validator, recorder, clock, log)


def _desk(
    context: SessionContext,
    settings: Settings,
    toolbox: Toolbox,
    permission: SessionPermission,
    outputs: LocalOutputStore,
    ledger: UsageLedger,
    servers: SessionServers | None,
    server_configs: tuple[ServerConfig, ...],
) -> SessionDesk:
    offered = OfferedTools(toolbox, disclosure_of(settings, server_configs), servers or Nowhere())
    return SessionDesk(context, offered, permission, outputs, ledger)


def _session(  # noqa: PLR0913, PLR0917 - one argument a dependency
    session_id: str,
    spec: SessionSpec,
    settings: Settings,
    desk: SessionDesk,
    recorder: SessionRecorder,
    engine: Engine,
    continued: Continued,
    guard: LocalPathGuard,
    local: LocalServices,
    client_ledger: TerminalLedger | None,
    shelf: EngineShelf,
    skills: LocalSkills,
    notices: SessionNotices,
    log: logging.Logger,
) -> LiveSession:
    if settings.keep_sessions and continued.kept is None:
        notices.warn("This session will not be kept", "Its log cannot be written; Punie's own log says why.")
    notes = LocalProjectNotes(guard, spec.cwd, spec.additional_directories, notices.warn)
    return LiveSession(
        id=session_id,
        desk=desk,
        engine=continued.memory.opened(engine, session_id),
        recorder=recorder,
        instructions=Instructions(spec.cwd, notes, skills),
        ledgers=(local.ledger,) if client_ledger is None else (client_ledger, local.ledger),
        turn_limits=settings.turn_limits,
        log=log,
        model=settings.model or DIRECT,
        engine_name=engine.name,
        shelf=shelf,
        effort=settings.effort,
        notices=notices,
        commands=SessionCommands(OWN_COMMANDS, LocalPromptFiles(spec.cwd)),
        gauge=continued.gauge(settings.context_tokens),
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
    plug_ins = providers.Dependency(instance_of=PlugIns)
    shelf = providers.Dependency(instance_of=EngineShelf)
    shell = providers.Dependency(instance_of=ShellInfo)
    continued = providers.Dependency(instance_of=Continued)
    log = providers.Dependency(instance_of=logging.Logger)
    usage_ledger = providers.Dependency(instance_of=UsageLedger)
    approvals = providers.Dependency(instance_of=Approvals)
    parser = providers.Dependency(instance_of=ShellParser)
    server_state = providers.Dependency(instance_of=ServerState)
    server_configs: providers.Dependency[tuple[ServerConfig, ...]] = providers.Dependency(instance_of=tuple)

    clock = providers.Singleton(LocalClock)
    validator = providers.Singleton(JsonSchemaRsValidator)
    guard = providers.Singleton(_guard, spec)
    outputs = providers.Singleton(_outputs)
    terminals = providers.Singleton(_terminals, spec, settings, outputs)
    local = providers.Singleton(_local, spec, peer, guard, terminals, shell, log)
    client_ledger = providers.Singleton(_client_ledger, peer, log)
    recorder = providers.Singleton(_recorder, peer, continued, clock, log)
    notices = providers.Singleton(SessionNotices, recorder)
    connections = providers.Singleton(connections_of, server_configs, clock, validator, peer)
    server_registry = providers.Singleton(
        server_registry_of, spec, server_configs, connections, server_state, clock, notices, log
    )
    servers = providers.Singleton(session_servers_of, session_id, server_registry, validator, log)
    assemble = providers.Singleton(_assemble, session_id, peer, settings, local, client_ledger, outputs, log)
    registry = providers.Singleton(_registry, peer, settings, local)
    skills = providers.Singleton(_skills, spec, settings, log)
    composed = providers.Singleton(ComposedTools, spec, settings, log)
    toolbox = providers.Singleton(
        _toolbox,
        session_id,
        spec,
        peer,
        settings,
        validator,
        clock,
        assemble,
        registry,
        plug_ins,
        servers,
        recorder,
        skills,
        composed,
        log,
    )
    context = providers.Singleton(_context, session_id, spec, settings, guard, validator, recorder, clock, log)
    permission = providers.Singleton(_permission, spec, peer, settings, context, parser, approvals)
    desk = providers.Singleton(
        _desk, context, settings, toolbox, permission, outputs, usage_ledger, servers, server_configs
    )
    session = providers.Singleton(
        _session,
        session_id,
        spec,
        settings,
        desk,
        recorder,
        engine,
        continued,
        guard,
        local,
        client_ledger,
        shelf,
        skills,
        notices,
        log,
    )
    lifecycle = providers.List(recorder, outputs, terminals, connections, server_registry, session)


class ProcessContainer(containers.DeclarativeContainer):
    """What all sessions of the process share, as values; lives as long as the process."""

    shell = providers.Dependency(instance_of=ShellInfo)
    log = providers.Dependency(instance_of=logging.Logger)
    usage_ledger = providers.Dependency(instance_of=UsageLedger)
    approvals = providers.Dependency(instance_of=Approvals)
    parser = providers.Dependency(instance_of=ShellParser)
    server_state = providers.Dependency(instance_of=ServerState)
    stored = providers.Dependency(instance_of=StoredSessions)
    session = providers.Factory(
        SessionContainer,
        shell=shell,
        log=log,
        usage_ledger=usage_ledger,
        approvals=approvals,
        parser=parser,
        server_state=server_state,
    )
