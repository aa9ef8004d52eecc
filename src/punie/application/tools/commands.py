"""run_command and the four terminal tools, over whichever terminals the plan names (S1, R-01)."""

from __future__ import annotations

from abc import abstractmethod

import anyio
from attrs import evolve, frozen

from punie.application.tools.built_in import BOOLEAN, STRING, BuiltInTool, optional, schema
from punie.application.tools.session_tool import CallContext, PreparedCall, flag_argument, text_argument
from punie.application.tools.terminal_ledger import TerminalLedger
from punie.application.tools.wording import command_of
from punie.domain.errors import ToolFailedError
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolOutcome, ToolResult
from punie.domain.values.content import TerminalView, Text
from punie.domain.values.json_value import JsonObject
from punie.domain.values.terminal import Command, ExitStatus, TerminalOutput
from punie.ports.tools import CallProgress

LOOK_FIRST_S = 0.1
LOOK_LAST_S = 1.0
"""How often a running command's output is looked at: seldom where nothing new came."""

LIVE_TAIL_CHARS = 8_192
"""What the client is shown of the output while the command runs: the last of it."""


@frozen
class RunCommand(BuiltInTool):
    """Runs a program to its end, or starts it in the background."""

    ledger: TerminalLedger
    DESCRIPTOR = ToolDescriptor(
        "run_command",
        ToolKind.EXECUTE,
        "Run a shell line, or with args the program `command`. Waits for the end unless background is true.",
        schema(
            {"command": STRING},
            {
                "args": optional("array", items=STRING),
                "cwd": optional("string"),
                "background": {**BOOLEAN, "description": "answer a terminal id at once"},
            },
        ),
        categories=("terminal",),
    )

    def command(self, arguments: JsonObject, context: CallContext) -> Command | None:
        command = command_of(arguments, context)
        return None if command is None else evolve(command, memory_mb=context.memory_mb, keeps_all=True)

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        command = context.command
        if command is None:
            raise ToolFailedError("command is empty. Give the program or the shell line to run.")
        background = flag_argument(arguments, "background")

        async def effect(progress: CallProgress) -> ToolResult:
            run = _Run(self.ledger, command, context, progress)
            return await (run.in_background() if background else run.to_the_end())

        return PreparedCall(effect, watches_time=True)


@frozen
class _Run:
    """One command on its way; lives as long as its call."""

    ledger: TerminalLedger
    command: Command
    context: CallContext
    progress: CallProgress

    async def in_background(self) -> ToolResult:
        terminal_id = await self._create()
        return ToolResult.success(
            f"Started in the background as terminal {terminal_id}.",
            content=self._view(terminal_id) or None,
            structured={"terminalId": terminal_id},
        )

    async def to_the_end(self) -> ToolResult:
        terminal_id = await self._create()
        try:
            view = self._view(terminal_id)
            if view:
                await self.progress.show(*view)
            ended = await self._wait(terminal_id)
            output = await self.ledger.terminals.output(terminal_id)
        finally:
            await self.ledger.release_surely(terminal_id)
        return self._result(ended, output, view)

    async def _create(self) -> str:
        terminal_id = await self.ledger.terminals.create(self.command)
        self.ledger.own(terminal_id, self.context.turn_id)
        return terminal_id

    async def _wait(self, terminal_id: str) -> ExitStatus | None:
        with anyio.move_on_after(self.context.time_limit_s):
            return await self._watched(terminal_id)
        await self.ledger.terminals.kill(terminal_id)
        return None

    async def _watched(self, terminal_id: str) -> ExitStatus:
        """Wait for the end; meanwhile show what is printed, unless the client shows the terminal itself (S2-90)."""
        terminals, shown, pause_s = self.ledger.terminals, "", LOOK_FIRST_S
        if terminals.shown_by_client:
            return await terminals.wait(terminal_id)
        while True:
            with anyio.move_on_after(pause_s):
                return await terminals.wait(terminal_id)
            latest = (await terminals.output(terminal_id)).text[-LIVE_TAIL_CHARS:]
            pause_s = LOOK_FIRST_S if latest != shown else min(2 * pause_s, LOOK_LAST_S)
            if latest != shown:
                shown = latest
                await self.progress.show(Text(latest))

    def _view(self, terminal_id: str) -> tuple[TerminalView, ...]:
        return (TerminalView(terminal_id),) if self.ledger.terminals.shown_by_client else ()

    def _result(self, ended: ExitStatus | None, output: TerminalOutput, view: tuple[TerminalView, ...]) -> ToolResult:
        if ended is not None:
            return _printed(output, ended, view)
        stopped = (
            f"\n[stopped: still running after {self.context.time_limit_s:g} s. Use background=true for programs that "
            "do not end, or raise limits.tools.run_command.time_s in the settings.]"
        )
        result = _printed(output, output.exit, (), stopped)
        return evolve(result, outcome=ToolOutcome.FAILED, code="timed_out")


@frozen
class _TerminalTool(BuiltInTool):
    """A tool that acts on one terminal of this session."""

    ledger: TerminalLedger

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        terminal_id = self.ledger.check(text_argument(arguments, "terminal_id"))

        async def effect(_progress: CallProgress) -> ToolResult:
            return await self.act(terminal_id, context)

        return PreparedCall(effect, watches_time=True)

    @abstractmethod
    async def act(self, terminal_id: str, context: CallContext) -> ToolResult:
        """Do it to a terminal that is known to be ours."""
        ...


def _terminal_tool(name: str, description: str) -> ToolDescriptor:
    return ToolDescriptor(
        name, ToolKind.EXECUTE, description, schema({"terminal_id": STRING}), categories=("terminal",)
    )


class GetTerminalOutput(_TerminalTool):
    """What a terminal printed so far."""

    DESCRIPTOR = _terminal_tool("get_terminal_output", "Get what a background command printed so far.")

    async def act(self, terminal_id: str, context: CallContext) -> ToolResult:
        output = await self.ledger.terminals.output(terminal_id)
        return _printed(output, output.exit)


class ReleaseTerminal(_TerminalTool):
    """Kill and forget a terminal."""

    DESCRIPTOR = _terminal_tool("release_terminal", "Stop a background command and forget its terminal.")

    async def act(self, terminal_id: str, context: CallContext) -> ToolResult:
        await self.ledger.release(terminal_id)
        return ToolResult.success(f"Released terminal {terminal_id}.")


class WaitForTerminalExit(_TerminalTool):
    """Wait for a terminal's program to end, within the time limit."""

    DESCRIPTOR = _terminal_tool("wait_for_terminal_exit", "Wait until a background command ends.")

    async def act(self, terminal_id: str, context: CallContext) -> ToolResult:
        with anyio.move_on_after(context.time_limit_s):
            ended = await self.ledger.terminals.wait(terminal_id)
            return ToolResult.success(
                f"Terminal {terminal_id}: {ended}.", structured={"exitCode": ended.exit_code, "signal": ended.signal}
            )
        return ToolResult.failure(
            f"Terminal {terminal_id} still runs after {context.time_limit_s:g} s. Wait again, or stop it with "
            "kill_terminal.",
            code="timed_out",
        )


class KillTerminal(_TerminalTool):
    """End a terminal's program; its output stays."""

    DESCRIPTOR = _terminal_tool("kill_terminal", "Stop a background command; its output stays readable.")

    async def act(self, terminal_id: str, context: CallContext) -> ToolResult:
        await self.ledger.terminals.kill(terminal_id)
        return ToolResult.success(f"Stopped terminal {terminal_id}; it is not released yet.")


def _printed(
    output: TerminalOutput, ended: ExitStatus | None, view: tuple[TerminalView, ...] = (), more: str = ""
) -> ToolResult:
    """The output as the model reads it: its text, whether it was cut, and how the program ended.

    Where a file has what was cut, the desk puts it before the text for the model; a person is told of the file.
    """
    body = output.text if not output.text or output.text.endswith("\n") else f"{output.text}\n"
    text, structured = f"{body}[{ended or 'still running'}]{more}", _structured(output, ended)
    if output.kept is None:
        cut = "[the beginning of the output was dropped]\n" if output.truncated else ""
        return ToolResult.success(cut + text, content=view or None, structured=structured)
    where = f"[what was printed before this is in {output.kept.path} until the session ends]\n"
    result = ToolResult.success(text, content=view or (Text(where + text),), structured=structured)
    return evolve(result, kept=output.kept)


def _structured(output: TerminalOutput, ended: ExitStatus | None) -> dict[str, object]:
    return {
        "output": output.text,
        "truncated": output.truncated,
        "exitCode": ended.exit_code if ended else None,
        "signal": ended.signal if ended else None,
    }
