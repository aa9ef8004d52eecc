"""The test suites themselves: real processes, somebody else's client, every tool, and nothing that blocks the loop."""

from __future__ import annotations

import ast
import functools
from fnmatch import fnmatch
from pathlib import Path

import pytest

from punie.adapters.acp import discovery
from punie.ports.tools import ToolProvider
from tests.architecture.source_tree import ROOT, calls_of, dotted, inside, marks_here, source_files, tree_of, walk

TESTS = ROOT / "tests"
SIX_TOOLS = (
    "write_file", "run_command", "get_terminal_output", "release_terminal", "wait_for_terminal_exit", "kill_terminal",
)  # fmt: skip
BLOCKING = ("time.sleep", "subprocess.", "socket.", "os.system", "os.wait", "urllib.request.", "shutil.")
BLOCKING_METHODS = {"read_text", "read_bytes", "write_text", "write_bytes"}


@functools.cache
def functions_below(*folders: str, named: str = "*") -> tuple[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef], ...]:
    """Every test function below those folders of tests/, with its file; of files and folders of that name alone."""
    return tuple(
        (path, node)
        for folder in folders
        for path in sorted((TESTS / folder).rglob("test_*.py"))
        if any(fnmatch(part, named) for part in path.relative_to(TESTS).parts)
        for node in walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


def blocking_calls(tree: ast.AST) -> list[str]:
    """Calls made directly in a coroutine that hold the loop: files, sleeps, processes, sockets without an await."""
    found: list[str] = []

    def visit(node: ast.AST, *, asynchronous: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Await) and isinstance(child.value, ast.Call):
                arguments = [*child.value.args, *(keyword.value for keyword in child.value.keywords)]
                visit(ast.Tuple(arguments), asynchronous=asynchronous)  # a function among them is not awaited here
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                visit(child, asynchronous=isinstance(child, ast.AsyncFunctionDef))
            else:
                if asynchronous and isinstance(child, ast.Call) and is_blocking(child):
                    found.append(f"line {child.lineno}: {ast.unparse(child.func)}")
                visit(child, asynchronous=asynchronous)

    if any(isinstance(node, ast.AsyncFunctionDef) for node in walk(tree)):
        visit(tree, asynchronous=False)
    return found


def is_blocking(call: ast.Call) -> bool:
    name = dotted(call.func)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return name == "open" or name.startswith(BLOCKING) or method in BLOCKING_METHODS


@pytest.mark.requirement("S3-18")
def test_no_coroutine_blocks_the_loop() -> None:
    assert {inside(path): found for path in source_files() if (found := blocking_calls(tree_of(path)))} == {}


@pytest.mark.parametrize("line", ["time.sleep(1)", "open('x')", "x = Path('x').read_text()", "subprocess.run(['x'])"])
def test_a_call_that_blocks_the_loop_is_seen(line: str) -> None:
    assert blocking_calls(ast.parse(f"async def f():\n    {line}"))
    assert not blocking_calls(ast.parse(f"def f():\n    {line}")), "a thread may"


def test_an_awaited_read_does_not_block_the_loop() -> None:
    assert not blocking_calls(ast.parse("async def f():\n    return await workspace.read_text('x')"))


@pytest.mark.requirement("M-19", "S3-37")
def test_the_official_sdk_is_the_client_in_at_least_ten_tests_over_real_processes() -> None:
    with_sdk = [node.name for _, node in functions_below("e2e") if "spawn_sdk" in {arg.arg for arg in node.args.args}]
    assert len(with_sdk) >= 10
    starter = (TESTS / "e2e" / "sdk_client.py").read_text(encoding="utf-8")
    assert "spawn_agent_process" in starter, "the SDK starts a process of its own"


@pytest.mark.requirement("S1-04", "S1-42")
@pytest.mark.parametrize("tool", SIX_TOOLS)
def test_each_tool_that_acts_is_called_in_a_test_over_a_real_pipe(tool: str) -> None:
    calling = [
        node.name
        for _, node in functions_below("e2e")
        for _, call in calls_of(node)
        if call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value == tool
    ]
    assert calling


DESK_FAMILIES = {
    "the life of a tool": range(1, 11),
    "the registry": range(11, 24),
    "execution": range(24, 38),
    "metadata and parameters": range(38, 68),
    "results and wire forms": range(68, 80),
}
"""The rows S2-NN of the desk by what they are about."""


@pytest.mark.requirement("S2-89")
@pytest.mark.parametrize("family", DESK_FAMILIES)
def test_each_part_of_the_desk_is_tested_row_by_row_alone_and_together_with_what_is_around_it(family: str) -> None:
    marks = {row_id: {file.split("/")[0] for file in files} for row_id, files in marks_here().items()}
    rows = [f"S2-{number:02}" for number in DESK_FAMILIES[family]]
    assert [row for row in rows if not marks.get(row)] == []
    alone = [row for row in rows if "unit" in marks[row]]
    together = [row for row in rows if marks[row] & {"integration", "e2e"}]
    assert len(alone) >= len(rows) * 2 / 3, alone
    assert len(together) >= 3, together


@pytest.mark.requirement("S3-38")
def test_the_pydantic_ai_engine_has_tests_of_its_own() -> None:
    own = [node.name for _, node in functions_below("unit", "integration", named="*pydantic_ai*")]
    assert len(own) >= 7


@pytest.mark.requirement("S0-23", "S0-38")
def test_discovery_has_one_name_on_the_wire_and_one_on_the_port() -> None:
    assert discovery.DISCOVER == "_punie.dev/discover_tools"
    assert "discover_tools" in vars(ToolProvider)
    assert issubclass(discovery.AcpToolCatalog, ToolProvider)
