"""The reference IDE on this machine: real files below one folder, real terminals, and Punie as its agent."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from punie.api import LocalPathGuard, LocalTerminals, LocalWorkspace
from punie_ide.permission import Decide, reject
from punie_ide.reference import ReferenceIde, start_ide
from punie_ide.session import Observe
from punie_ide.tools import IdeTool, ToolShelf


def punie_command(model: str | None = None) -> list[str]:
    """The command that starts Punie as an agent, with this interpreter and this package."""
    return [sys.executable, "-m", "punie", "acp", *(() if model is None else ("--model", model))]


@asynccontextmanager
async def open_local_ide(
    project: str,
    *,
    agent: Sequence[str],
    tools: Sequence[IdeTool] | ToolShelf | None = None,
    extends: bool = False,
    decide: Decide = reject,
    observe: Observe | None = None,
    env: Mapping[str, str] | None = None,
) -> AsyncGenerator[ReferenceIde]:
    """An IDE around the absolute folder `project`, with the agent started and initialized.

    Open a session with `await ide.new_session(project)`. `agent` is a command line such as `punie_command()`; `env`
    replaces the agent's whole environment where given; the other options are those of the reference IDE. Raises
    `AgentGone` where the agent cannot be started or ends.
    """
    workspace = LocalWorkspace(LocalPathGuard((project,), project))
    async with (
        LocalTerminals() as terminals,
        start_ide(
            agent, cwd=project, env=env, workspace=workspace, terminals=terminals, tools=tools, extends=extends,
            decide=decide, observe=observe,
        ) as ide,
    ):  # fmt: skip
        yield ide
