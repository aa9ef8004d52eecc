"""From a plan to tools: each name of the plan bound to the ports that serve it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import cast

from attrs import field, frozen

from punie.application.offer.registry import Service, Services
from punie.application.tools.bridged import BridgedTool
from punie.application.tools.checks import PythonLint, PythonTests, PythonTypes
from punie.application.tools.commands import (
    GetTerminalOutput,
    KillTerminal,
    ReleaseTerminal,
    RunCommand,
    WaitForTerminalExit,
)
from punie.application.tools.editing import EditFile
from punie.application.tools.file_memory import FileMemory
from punie.application.tools.files import ReadFile, WriteFile
from punie.application.tools.git import GitAddCommit, GitDiff, GitLog, GitStatus
from punie.application.tools.kept_outputs import ReadFileOrOutput
from punie.application.tools.searching import ListFiles, SearchText
from punie.application.tools.session_tool import SessionTool
from punie.application.tools.shell_info import GetShellInfo, ShellInfo
from punie.application.tools.terminal_ledger import TerminalLedger
from punie.domain.tools.discovery import BuiltIn, Server, ToolPlan
from punie.ports.people import Peer
from punie.ports.tools import PythonChecks
from punie.ports.workspace import FileTree, OutputStore, Repository, Workspace


@frozen
class LocalServices(Services):
    """What this machine can serve in one session, also to the factories of tools; lives as long as the session."""

    workspace: Workspace
    ledger: TerminalLedger
    tree: FileTree
    repository: Repository
    shell: ShellInfo
    checks: PythonChecks

    def get(self, kind: type[Service]) -> Service:
        known: Mapping[object, object] = {
            Workspace: self.workspace,
            TerminalLedger: self.ledger,
            FileTree: self.tree,
            Repository: self.repository,
            ShellInfo: self.shell,
            PythonChecks: self.checks,
        }
        if kind not in known:
            raise LookupError(f"this session has no {kind.__name__}")
        return cast("Service", known[kind])


@frozen
class KeptOutputs:
    """Long results of the session, and the workspace that reads them; lives as long as the session."""

    store: OutputStore
    workspace: Workspace


@frozen
class AssembleTools:
    """Binds plans to one session's ports; lives as long as the session.

    `client_ledger` is None where the client has no terminals; the plan then names none of its terminal tools.
    `reads_disk` is False where this machine serves nothing (`tools.local` is `never`): not even the old text of a diff.
    """

    session_id: str
    peer: Peer
    local: LocalServices
    client_ledger: TerminalLedger | None
    log: logging.Logger
    memory: FileMemory = field(factory=FileMemory, kw_only=True)
    kept: KeptOutputs | None = None
    reads_disk: bool = True

    def __call__(self, plan: ToolPlan) -> tuple[SessionTool, ...]:
        """The session's tools in the plan's order."""
        bridged = () if self.peer.bridge is None else tuple(
            BridgedTool(tool, self.peer.bridge, self.session_id, self.log) for tool in plan.catalog
        )  # fmt: skip
        return (*bridged, *(self._built_in(tool) for tool in plan.built_ins))

    def _built_in(self, tool: BuiltIn) -> SessionTool:
        by_client = tool.server is Server.CLIENT
        workspace = self.peer.workspace if by_client and self.peer.workspace is not None else self.local.workspace
        ledger = self.client_ledger if by_client and self.client_ledger is not None else self.local.ledger
        files = _Files(workspace, self._before(by_client=by_client), self.memory, workspace is self.peer.workspace)
        made = _makers(files, ledger, self.local)[tool.name]()
        if tool.name != "read_file" or self.kept is None:
            return made
        return ReadFileOrOutput(made, ReadFile(self.kept.workspace), self.kept.store)

    def _before(self, *, by_client: bool) -> Workspace | None:
        """Whom a write asks for the old text: the client where it reads, else this machine's disk."""
        if by_client and self.peer.capabilities.read_text_file:
            return self.peer.workspace
        return self.local.workspace if self.reads_disk else None


@frozen
class _Files:
    """Who reads and writes a tool's files, who tells what a write replaces, and what the session knows of them."""

    workspace: Workspace
    before: Workspace | None
    memory: FileMemory
    decoded_elsewhere: bool


def _makers(files: _Files, ledger: TerminalLedger, local: LocalServices) -> Mapping[str, Callable[[], SessionTool]]:
    return {
        "read_file": lambda: ReadFile(files.workspace, files.memory),
        "write_file": lambda: WriteFile(files.workspace, files.before, files.memory),
        "run_command": lambda: RunCommand(ledger),
        "get_terminal_output": lambda: GetTerminalOutput(ledger),
        "release_terminal": lambda: ReleaseTerminal(ledger),
        "wait_for_terminal_exit": lambda: WaitForTerminalExit(ledger),
        "kill_terminal": lambda: KillTerminal(ledger),
        "edit_file": lambda: EditFile(files.workspace, files.memory, files.decoded_elsewhere),
        "list_files": lambda: ListFiles(local.tree),
        "search_text": lambda: SearchText(local.tree),
        "get_shell_info": lambda: GetShellInfo(local.shell),
        "git_status": lambda: GitStatus(local.repository),
        "git_diff": lambda: GitDiff(local.repository),
        "git_log": lambda: GitLog(local.repository),
        "git_add_commit": lambda: GitAddCommit(local.repository),
        "python_lint": lambda: PythonLint(local.checks, local.ledger),
        "python_types": lambda: PythonTypes(local.checks, local.ledger),
        "python_tests": lambda: PythonTests(local.checks, local.ledger),
    }
