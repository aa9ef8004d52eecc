"""What all tools of ours say of themselves, without making one."""

from __future__ import annotations

from collections.abc import Mapping

from punie.application.tools.built_in import BuiltInTool
from punie.application.tools.checks import PythonLint, PythonTests, PythonTypes
from punie.application.tools.commands import (
    GetTerminalOutput,
    KillTerminal,
    ReleaseTerminal,
    RunCommand,
    WaitForTerminalExit,
)
from punie.application.tools.editing import EditFile
from punie.application.tools.files import ReadFile, WriteFile
from punie.application.tools.git import GitAddCommit, GitDiff, GitLog, GitStatus
from punie.application.tools.searching import ListFiles, SearchText
from punie.application.tools.shell_info import GetShellInfo
from punie.domain.tools.tool import ToolDescriptor

_TOOLS: tuple[type[BuiltInTool], ...] = (
    ReadFile, WriteFile, EditFile, ListFiles, SearchText, RunCommand, GetTerminalOutput, ReleaseTerminal,
    WaitForTerminalExit, KillTerminal, GetShellInfo, GitStatus, GitDiff, GitLog, GitAddCommit, PythonLint, PythonTypes,
    PythonTests,
)  # fmt: skip

OWN_TOOLS: Mapping[str, ToolDescriptor] = {tool.DESCRIPTOR.name: tool.DESCRIPTOR for tool in _TOOLS}
"""By name; the same names as `domain.discovery.BUILT_IN_TOOLS`."""
