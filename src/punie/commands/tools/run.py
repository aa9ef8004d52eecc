"""`punie tools`: the tools that a session on this machine would have, and one call of one of them."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
from attrs import define, field

from punie.adapters.console.front_end import ConsoleBroker, HeadlessBroker
from punie.adapters.console.output import Pipe
from punie.application.offer.registry import ToolRegistry
from punie.bootstrap.session_here import SessionHere, open_session_here
from punie.bootstrap.settings.settings import load_settings
from punie.commands.running import (
    EXIT_DENIED,
    EXIT_FAILED,
    EXIT_USAGE,
    command_environ,
    directory_of,
    exit_at_once,
    start_logging,
    unless_interrupted,
    wrong,
)
from punie.commands.tools.shown import (
    Costs,
    Listed,
    as_check,
    as_cost_table,
    as_costs,
    as_entry,
    as_estimate,
    as_full_entry,
    as_page,
    as_table,
    costs_of,
    left_out,
    listed,
)
from punie.domain.errors import EngineError, PunieError, SettingsError
from punie.domain.model.choice import DIRECT
from punie.domain.tools.tool import ToolCall, ToolOutcome, ToolResult, encode_result
from punie.domain.values.display import display_safe, one_line
from punie.domain.values.json_value import JsonObject, NotJsonError, freeze_object

_EXIT_OF_OUTCOME = {ToolOutcome.SUCCEEDED: 0, ToolOutcome.DENIED: EXIT_DENIED}


@define
class ToolsMode:
    """One run of `punie tools`; `run` gives the exit code. `action` is the subcommand, `words` what follows it."""

    environ: Mapping[str, str]
    model: str | None
    as_json: bool
    cwd: Path
    action: str
    words: tuple[str, ...]
    every: bool
    _out: Pipe = field(factory=lambda: Pipe(sys.stdout), init=False)

    async def run(self) -> int:
        """Open a session as `punie ask` would, do what was asked for, and close it."""
        return await unless_interrupted(self._session_or_refusal)

    async def _session_or_refusal(self) -> int:
        # Caught inside the task group that watches for signals: it would hand the error on in a group.
        try:
            return await self._session()
        except PunieError as error:
            return self._refused(error)

    async def _session(self) -> int:
        person = sys.stdin.isatty() and sys.stderr.isatty() and not self.as_json
        broker = ConsoleBroker(sys.stdin.readline) if person else HeadlessBroker()
        async with open_session_here(
            str(self.cwd), model=self.model or DIRECT, broker=broker, environ=self.environ
        ) as session:
            return await self._act(session)

    async def _act(self, session: SessionHere) -> int:
        registry = session.registry
        if self.action not in {"call", "check", "show"} or registry.get(self.words[0]) is None:
            await session.live.desk.offered.freshen(within_s=None)  # a person asked for all of them, and may wait
        match self.action, self.words:
            case "call", (name, arguments):
                return await self._call(session, name, arguments)
            case "check", (name, arguments):
                return await self._check(session, name, arguments)
            case "show", (name,):
                return self._show(registry, name)
            case "search", (query,):
                self._list(listed(registry, registry.query(text=query)))
            case "tokens", _:
                # The session here has no model; what is asked for is what the configured one would read.
                policy = load_settings(self.environ, {"model": self.model}, str(self.cwd)).disclosure
                self._tokens(costs_of(registry.catalog(), policy))
            case _:
                self._list(listed(registry, registry.tools), left_out(registry) if self.every else [])
        return 0

    def _list(self, entries: list[Listed], missing: list[Listed] | None = None) -> None:
        missing = missing or []
        if self.as_json:
            self._print_json([as_entry(entry) for entry in (*entries, *missing)])
        else:
            self._out.write(as_table(entries, missing))

    def _tokens(self, costs: Costs) -> None:
        if self.as_json:
            self._print_json(as_costs(costs))
        else:
            self._out.write(as_cost_table(costs))

    def _show(self, registry: ToolRegistry, name: str) -> int:
        found = next(
            (entry for entry in (*listed(registry, registry.tools), *left_out(registry)) if entry.tool.name == name),
            None,
        )
        if found is None:
            return self._unknown(registry, name)
        if self.as_json:
            self._print_json(as_full_entry(found))
        else:
            self._out.write(as_page(found))
        return 0

    async def _call(self, session: SessionHere, name: str, written: str) -> int:
        arguments = self._arguments(session.registry, name, written)
        return EXIT_USAGE if arguments is None else self._told(name, await session.call(name, arguments))

    async def _check(self, session: SessionHere, name: str, written: str) -> int:
        """Tell what keeps the call from running unasked, and what it will probably take; nothing is run."""
        arguments = self._arguments(session.registry, name, written)
        if arguments is None:
            return EXIT_USAGE
        desk = session.live.desk
        problems = await desk.validate(ToolCall("", name, arguments))
        estimate = await desk.estimate(name, arguments)
        if self.as_json:
            expected = None if estimate is None else as_estimate(estimate)
            self._print_json({"name": name, "problems": list(problems), "estimate": expected})
        else:
            self._out.write(as_check(name, problems, estimate))
        return EXIT_FAILED if problems else 0

    def _arguments(self, registry: ToolRegistry, name: str, written: str) -> JsonObject | None:
        """The arguments for that tool; None once a person was told why there are none."""
        if registry.get(name) is None:
            self._unknown(registry, name)
            return None
        try:
            return freeze_object(json.loads(written))
        except (NotJsonError, ValueError, RecursionError) as error:
            wrong(f'the arguments must be a JSON object such as \'{{"path": "a.txt"}}\': {error}')
            return None

    def _told(self, name: str, result: ToolResult) -> int:
        code = _EXIT_OF_OUTCOME.get(result.outcome, EXIT_FAILED)
        if self.as_json:
            told = {"name": name, "outcome": result.outcome.value, "text": result.text, "code": result.code}
            self._print_json({**told, **encode_result(result), "exitCode": code})
        elif result.succeeded:
            self._out.write(f"{display_safe(result.text)}\n")
        else:
            wrong(result.text)
        return code

    def _unknown(self, registry: ToolRegistry, name: str) -> int:
        reasons = {left.tool.name: left.reason for left in registry.left_out}
        if name in reasons:
            return wrong(f"the tool {name} is left out: {reasons[name]}")
        near = difflib.get_close_matches(name, [tool.name for tool in registry.tools], n=3)
        hint = f"Did you mean {', '.join(near)}?" if near else "`punie tools list` names them all."
        return wrong(f"there is no tool named {one_line(name, 80)!r}. {hint}")

    def _refused(self, error: PunieError) -> int:
        wrong(str(error))
        return EXIT_USAGE if isinstance(error, (SettingsError, EngineError)) else EXIT_FAILED

    def _print_json(self, value: object) -> None:
        self._out.write(json.dumps(value, indent=2) + "\n")


def run_tools(
    *, action: str, words: tuple[str, ...], as_json: bool, cwd: str, model: str | None = None, every: bool = False
) -> int:
    """Run one `punie tools` command; gives the exit code, or leaves with it."""
    environ = command_environ()
    directory = directory_of(cwd)
    if directory is None:
        return EXIT_USAGE
    start_logging(environ, None)
    mode = ToolsMode(environ, model, as_json, directory, action, words, every)
    return exit_at_once(anyio.run(mode.run))
