"""The six public MCP servers that `make servers` installs beside this file, from npm and PyPI (issue 5, shows)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from punie.domain.servers.server import ServerConfig, StdioTransport

FROM_NPM = ("everything", "filesystem", "memory")
FROM_PYPI = ("git", "time", "fetch")
ALL = (*FROM_NPM, *FROM_PYPI)

_HERE = Path(__file__).resolve().parent


def missing_reason(name: str) -> str | None:
    """Why that server cannot be started here, or None. Says what to do about it."""
    program, *arguments = _command(name)
    script = Path(arguments[0])
    if name in FROM_NPM and (not program or not script.exists()):
        return f"THE PUBLIC SERVER {name} IS NOT TESTED: install Node.js, then run `make servers`"
    if name in FROM_PYPI and not Path(program).exists():
        return f"THE PUBLIC SERVER {name} IS NOT TESTED: run `make servers`"
    return None


def stdio(name: str, *arguments: str, **env: str) -> StdioTransport:
    """That server with these arguments; skips the test where it is not installed, and fails it on CI."""
    if (reason := missing_reason(name)) is not None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    program, *first = _command(name)
    return StdioTransport(program, (*first, *arguments), env)


def config(name: str, *arguments: str, **env: str) -> ServerConfig:
    """The same as the configuration of a server of that name."""
    return ServerConfig(name, stdio(name, *arguments, **env))


def entry(name: str, *arguments: str, **env: str) -> dict[str, Any]:
    """The same as a file of servers has it."""
    made = stdio(name, *arguments, **env)
    return {"command": made.command, "args": list(made.args), "env": dict(made.env)}


def all_six(folder: Path) -> dict[str, ServerConfig]:
    """Every one of them, at work in that folder and nowhere else."""
    return {
        "everything": config("everything", "stdio"),
        "filesystem": config("filesystem", str(folder)),
        "memory": config("memory", MEMORY_FILE_PATH=str(folder / "memory.jsonl")),
        "git": config("git"),
        "time": config("time"),
        "fetch": config("fetch", "--ignore-robots-txt", "--allow-private-ips"),
    }


def _command(name: str) -> list[str]:
    folder = Path(os.environ.get("PUNIE_TEST_SERVERS") or _HERE)
    if name in FROM_NPM:
        script = folder / "node_modules" / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
        return [shutil.which("node") or "", str(script)]
    # By its module and not by its script: a script holds the path at which it was installed, and a tree may be moved.
    return [str(folder / ".venv" / "bin" / "python"), "-m", f"mcp_server_{name}"]
