"""From a plan to tools: each name of the plan bound to the ports that serve it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from attrs import frozen

from punie.application.session_tool import SessionTool
from punie.application.terminal_ledger import TerminalLedger
from punie.application.tools.bridged import BridgedTool
from punie.application.tools.commands import (
    GetTerminalOutput,
    KillTerminal,
    ReleaseTerminal,
    RunCommand,
    WaitForTerminalExit,
)
from punie.application.tools.files import EditFile, ReadFile, WriteFile
from punie.application.tools.git import GitAddCommit, GitDiff, GitLog, GitStatus
from punie.application.tools.searching import ListFiles, SearchText
from punie.application.tools.shell_info import GetShellInfo, ShellInfo
from punie.domain.discovery import BuiltIn, Server, ToolPlan
from punie.ports.file_tree import FileTree
from punie.ports.peer import Peer
from punie.ports.repository import Repository
from punie.ports.workspace import Workspace


@frozen
class LocalServices:
    """What this machine can serve in one session; lives as long as the session."""

    workspace: Workspace
    ledger: TerminalLedger
    tree: FileTree
    repository: Repository
    shell: ShellInfo


@frozen
class AssembleTools:
    """Binds plans to one session's ports; lives as long as the session.

    `client_ledger` is None where the client has no terminals; the plan then names none of its terminal tools.
    """

    session_id: str
    peer: Peer
    local: LocalServices
    client_ledger: TerminalLedger | None
    log: logging.Logger

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
        return _makers(workspace, self._before(by_client=by_client), ledger, self.local)[tool.name]()

    def _before(self, *, by_client: bool) -> Workspace | None:
        """Whom a write asks for the old text: the client where it reads, else this machine's disk."""
        if by_client and self.peer.capabilities.read_text_file:
            return self.peer.workspace
        return self.local.workspace


def _makers(
    workspace: Workspace, before: Workspace | None, ledger: TerminalLedger, local: LocalServices
) -> Mapping[str, Callable[[], SessionTool]]:
    return {
        "read_file": lambda: ReadFile(workspace),
        "write_file": lambda: WriteFile(workspace, before),
        "run_command": lambda: RunCommand(ledger),
        "get_terminal_output": lambda: GetTerminalOutput(ledger),
        "release_terminal": lambda: ReleaseTerminal(ledger),
        "wait_for_terminal_exit": lambda: WaitForTerminalExit(ledger),
        "kill_terminal": lambda: KillTerminal(ledger),
        "edit_file": lambda: EditFile(workspace),
        "list_files": lambda: ListFiles(local.tree),
        "search_text": lambda: SearchText(local.tree),
        "get_shell_info": lambda: GetShellInfo(local.shell),
        "git_status": lambda: GitStatus(local.repository),
        "git_diff": lambda: GitDiff(local.repository),
        "git_log": lambda: GitLog(local.repository),
        "git_add_commit": lambda: GitAddCommit(local.repository),
    }
