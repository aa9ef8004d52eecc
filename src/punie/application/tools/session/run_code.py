"""The tool `run_code`: runs a short program of the model, whose calls of tools go through the desk."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping

from attrs import define, field, frozen

from punie.application.tools.built_in import STRING, BuiltInTool, schema
from punie.application.tools.session_tool import CallContext, Composition, PreparedCall, only_in_a_turn
from punie.domain.errors import LimitExceededError
from punie.domain.pipelines.program import PROGRAM_LIMIT_CHARS, CallRaisedError, ProgramEnd, ProgramLimits
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.schema import text_argument
from punie.domain.tools.tool import ToolCall, ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.display import counted, one_line
from punie.domain.values.json_value import JsonObject, JsonValue, freeze_object, json_text, thaw
from punie.ports.tools import CallProgress, ProgramSandbox

OUTPUT_LIMIT = 1_048_576
DEFAULT_LIMITS = ProgramLimits()
TOOL = "tool"
"""The function that calls any tool by its name, for tools whose names are no names in Python."""


@define
class ToolsInReach:
    """The tools of a session that programs may call, by name; updated whenever the session's tools are listed."""

    tools: dict[str, ToolDescriptor] = field(factory=dict[str, ToolDescriptor])


@frozen
class RunCode(BuiltInTool):
    """Runs a program, without an effect of its own and without a question: each call of the program is decided on."""

    sandbox: ProgramSandbox
    reach: ToolsInReach
    limits: ProgramLimits = DEFAULT_LIMITS
    DESCRIPTOR = ToolDescriptor(
        "run_code",
        ToolKind.OTHER,
        "Run a short Python program that calls this session's tools as functions: "
        "list_files(path='src')['files'] or tool('any-name', key=1); no await. A call gives the structured result, "
        "else text, and raises RuntimeError where it fails or is denied. Some of Python with json, re, math; no "
        "files, network, other imports. You get its output and its last value.",
        schema({"code": {**STRING, "maxLength": PROGRAM_LIMIT_CHARS}}),
        categories=("session",),
        roles={"code": Role.PLAIN},
        column=Column.READ,
    )

    def title(self, arguments: JsonObject) -> str:
        lines = text_argument(arguments, "code").strip().splitlines()
        return one_line(f"Running a program of {counted(len(lines), 'line')}: {lines[0] if lines else ''}")

    def denial(self, arguments: JsonObject) -> str:
        return "Permission denied to run a program"

    def paths(self, arguments: JsonObject) -> tuple[str, ...]:
        return ()

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        program = text_argument(arguments, "code")

        async def composed(calls: Composition, progress: CallProgress) -> ToolResult:
            made = _Calls(calls, self.reach, progress)
            end = await self.sandbox.run(program, made.call, self.limits)
            return _told(end, made.count)

        return PreparedCall(only_in_a_turn, composed=composed)


@define
class _Calls:
    """The calls of one program; lives as long as the program runs."""

    calls: Composition
    reach: ToolsInReach
    progress: CallProgress
    count: int = 0

    async def call(self, name: str, given: tuple[JsonValue, ...], named: JsonObject) -> JsonValue:
        """One call through the desk. Raises `CallRaisedError`."""
        if name == TOOL and given and isinstance(given[0], str):
            name, given = given[0], given[1:]
        descriptor = self.reach.tools.get(name)
        if descriptor is None:
            raise CallRaisedError(_unknown(name, self.reach), "NameError")
        arguments = _arguments(descriptor, given, named)
        self.count += 1
        await self.progress.report(f"call {self.count}: {name}")
        try:
            result = await self.calls.call(ToolCall(f"{self.progress.call_id}.{self.count}", name, arguments))
        except LimitExceededError as error:
            raise CallRaisedError(str(error)) from None
        if not result.succeeded:
            raise CallRaisedError(result.text)
        return result.data


def _unknown(name: str, reach: ToolsInReach) -> str:
    near = difflib.get_close_matches(name, reach.tools, n=3)
    hint = f"did you mean {', '.join(near)}?" if near else f"the tools are {', '.join(reach.tools)}"
    return f"name {one_line(name, 80)!r} is not defined, and no tool is named so; {hint[:1_000]}"


def _arguments(tool: ToolDescriptor, given: tuple[JsonValue, ...], named: JsonObject) -> JsonObject:
    """The arguments by name: those by place in the order of the tool's schema. Raises `CallRaisedError`."""
    if not given:
        return named
    known = tool.parameters.get("properties")
    names = list(known) if isinstance(known, Mapping) else []
    if len(given) > len(names):
        raise CallRaisedError(f"{tool.name}() takes {len(names)} arguments, {len(given)} were given", "TypeError")
    placed = dict(zip(names, given, strict=False))
    twice = sorted(placed.keys() & named.keys())
    if twice:
        raise CallRaisedError(f"{tool.name}() got {twice[0]!r} twice", "TypeError")
    return freeze_object({**placed, **named})


def _told(end: ProgramEnd, calls: int) -> ToolResult:
    structured = {"value": thaw(end.value), "printed": end.printed, "calls": calls}
    if end.error is not None:
        place = "" if end.line_1based is None else f"line {end.line_1based}: "
        before = f"{end.printed.rstrip()}\n" if end.printed.strip() else ""
        return ToolResult.failure(
            f"{before}The program ended at {place}{end.error}\n"
            f"It had made {counted(calls, 'call')}, whose effects remain.",
            code="program_failed",
            structured={**structured, "line": end.line_1based, "error": end.error},
        )
    if len(json_text(end.value)) > OUTPUT_LIMIT:
        return ToolResult.failure(
            f"The program ran, but its value is larger than {OUTPUT_LIMIT} characters. Print or return less.",
            code="program_output",
            structured={**structured, "value": None},
        )
    value = end.value if isinstance(end.value, str) else json.dumps(thaw(end.value), ensure_ascii=False)
    shown = [end.printed.rstrip()] if end.printed.strip() else []
    if end.value is not None or not shown:
        shown.append(value)
    return ToolResult.success("\n".join(shown), structured=structured)
