"""`punie permissions check` and `explain`: decisions without a session, and their wording."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import PurePath
from typing import Any, BinaryIO, Self, cast

from attrs import define, evolve, field, frozen

from landbox.box import held
from punie.adapters.local.files.path_guard import LocalPathGuard
from punie.adapters.local.programs.boxes import PROGRAM
from punie.application.desk.command_review import paths_to_follow, patterns_to_expand, read_command, with_places
from punie.application.offer.bridged import OtherParties
from punie.application.offer.profiles import Profile
from punie.application.tools.own_tools import OWN_TOOLS
from punie.application.tools.terminals.run_command import RunCommand
from punie.bootstrap.settings.keys import SANDBOX
from punie.bootstrap.settings.permissions import home_of, parse_mode
from punie.bootstrap.settings.settings import Settings
from punie.bootstrap.settings.sources import load_settings, stored_trust
from punie.bootstrap.settings.values import Sandbox
from punie.bootstrap.tool_profiles import tool_profiles
from punie.commands.flags import settings_flags
from punie.commands.running import CommandError, command_environ, start_logging
from punie.domain.errors import SettingsError
from punie.domain.permission.decisions import PartDecision
from punie.domain.permission.policy import Decision, Facts, PermissionRequest, Policy, decide
from punie.domain.permission.rules import Mode, Rule, Verdict
from punie.domain.tools.foreign_roles import at_home
from punie.domain.tools.tool import NAME_PATTERN, ToolDescriptor, ToolKind, ToolSource
from punie.domain.values.display import display_safe, one_line
from punie.domain.values.json_value import EMPTY_OBJECT, JsonObject, NotJsonError, freeze_object, json_text
from punie.domain.values.terminal import Command
from punie.mechanics.output import loss
from shellsight.parser.tree_sitter_bash import TreeSitterBashParser
from shellsight.report import CommandPart, PathUse
from shellsight.surroundings import ShellParser

LINE_LIMIT_BYTES = 1_048_576
"""A longer line is refused."""


def encode_decision(decision: Decision, *, held: bool) -> dict[str, object]:
    """A decision as a JSON object; `held`: this machine can hold the boxes that the settings want."""
    parts = [
        {"argv": part.argv, "verdict": part.verdict, "rule": part.rule, "reason": display_safe(part.reason)}
        for part in decision.parts
    ]
    return {
        "verdict": decision.verdict,
        "rule": decision.rule,
        "reason": display_safe(decision.reason),
        "parts": parts,
        "box": decision.box,
        "boxHeld": held,
    }


def _text_of(line: bytes) -> str:
    if len(line) > LINE_LIMIT_BYTES:
        raise NotARequestError(f"it is longer than {LINE_LIMIT_BYTES} bytes")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotARequestError("it is not UTF-8") from error


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """The stream's lines; of a line that is too long, only the beginning."""
    while line := stream.readline(LINE_LIMIT_BYTES + 1):
        rest = line
        while rest and not rest.endswith(b"\n") and len(rest) > LINE_LIMIT_BYTES:
            rest = stream.readline(LINE_LIMIT_BYTES + 1)
        yield line


def run_check(*, as_json: bool, cwd: str, **flags: Any) -> int:
    """Answer the requests on stdin, one a line, each before the next is read; returns the exit code."""
    judge, here = _judge(flags), _absolute(cwd)
    for line in _lines(sys.stdin.buffer):
        if line.strip():
            sys.stdout.write(_answer(judge, line, here, as_json=as_json) + "\n")
            if loss(sys.stdout):
                break
    return 0


def run_explain(*, what: str | None, arguments: str | None, cwd: str, **flags: Any) -> int:
    """Explain one decision; returns the exit code.

    `what` is a command line, or with `arguments` (JSON) a tool's name; None shows the policy in force.
    """
    judge, here = _judge(flags), _absolute(cwd)
    if what is None:
        sys.stdout.write(in_force(judge.settings(here).policy))
        return 0
    given = {"command": what} if arguments is None else _parsed("the arguments are", arguments)
    tool = RunCommand.DESCRIPTOR.name if arguments is None else what
    request = CheckRequest.of({"tool": tool, "arguments": given}, here)
    sys.stdout.write(explained(request, *judge.judge(request)))
    return 0


def _judge(given: Mapping[str, Any]) -> PermissionJudge:
    environ, flags = command_environ(), settings_flags(**given)
    log = start_logging(environ, None)
    trusted, parser = stored_trust(environ, log), TreeSitterBashParser()

    def settings(directory: str) -> Settings:
        return load_settings(environ, flags, directory, trusted, lambda: parser)

    settings(os.devnull)  # a fault in the user's own settings is reported before anything is read
    return PermissionJudge(environ, settings, parser)


def _absolute(cwd: str) -> str:
    return os.path.abspath(cwd)  # noqa: PTH100 - the directory need not exist


def _answer(judge: PermissionJudge, line: bytes, here: str, *, as_json: bool) -> str:
    try:
        request = CheckRequest.parse(_text_of(line), here)
    except NotARequestError as error:
        what = display_safe(str(error))
        return json.dumps({"error": what}) if as_json else f"error: {what}"
    try:
        decision, _, _ = judge.judge(request)
        held = as_json and judge.holds(request.cwd)
    except SettingsError as error:
        if request.cwd == here:
            raise
        # No session starts there, and the lines that follow may be about other directories.
        decision, held = Decision(Verdict.DENY, "built-in:settings", str(error)), False
    return json.dumps(encode_decision(decision, held=held)) if as_json else one_decision(decision)


def _parsed(what: str, text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotARequestError(f"{what} not JSON ({error})") from error


KEPT_DIRECTORIES = 64
"""The number of directories whose settings are kept in memory."""


class NotARequestError(CommandError):
    """A line is not a request; the message says why."""


@frozen
class CheckRequest:
    """One call to be judged. `cwd` is absolute, and the only root; without a `mode`, the settings' mode is used."""

    tool: str
    arguments: JsonObject
    cwd: str
    mode: Mode | None = None

    @classmethod
    def parse(cls, line: str, here: str) -> Self:
        """The request in a line of JSON. Raises `NotARequestError`."""
        given = _parsed("it is", line)
        if not isinstance(given, dict):
            raise NotARequestError("expected an object with tool, arguments, cwd and perhaps mode")
        return cls.of(cast("Mapping[str, object]", given), here)

    @classmethod
    def of(cls, given: Mapping[str, object], here: str) -> Self:
        """The request with those keys; `cwd` is `here` where it is missing. Raises `NotARequestError`."""
        tool, cwd, mode = given.get("tool"), given.get("cwd", here), given.get("mode")
        if not isinstance(tool, str) or not NAME_PATTERN.fullmatch(tool):
            raise NotARequestError("tool: expected a tool's name")
        if not isinstance(cwd, str) or not PurePath(cwd).is_absolute() or "\0" in cwd:
            raise NotARequestError("cwd: expected an absolute path")
        try:
            arguments = freeze_object(given.get("arguments", {}))
        except (NotJsonError, RecursionError) as error:
            raise NotARequestError(f"arguments: expected an object ({error})") from error
        try:
            return cls(tool, arguments, os.path.normpath(cwd), None if mode is None else parse_mode(mode))
        except ValueError as error:
            raise NotARequestError(f"mode: {error}") from error


_REQUIRED = {Sandbox.LANDLOCK, Sandbox.BUBBLEWRAP}
"""Sandboxes without which nothing runs unasked: a decision counts on them."""


def holds_boxes(sandbox: Sandbox) -> bool:
    """Whether this machine holds the boxes of that setting."""
    if sandbox is Sandbox.BUBBLEWRAP:
        return shutil.which(PROGRAM) is not None
    return sandbox is not Sandbox.NONE and held() > 0


@define
class PermissionJudge:
    """Judges calls; lives as long as the command. `settings` returns the settings for a directory, and may raise."""

    environ: Mapping[str, str]
    settings: Callable[[str], Settings]
    parser: ShellParser
    _here: Callable[[str], tuple[Settings, LocalPathGuard]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._here = lru_cache(KEPT_DIRECTORIES)(self._looked_at)

    def judge(self, request: CheckRequest) -> tuple[Decision, Facts, Policy]:
        """The decision, and the facts and the policy that led to it. Raises `SettingsError`."""
        settings, guard = self._here(request.cwd)
        policy = settings.policy if request.mode is None else evolve(settings.policy, mode=request.mode)
        tool = descriptor_of(request.tool, request.arguments, settings.profiles)
        own = tool.source is ToolSource.BUILT_IN and tool.kind is ToolKind.EXECUTE
        boxed = own and (settings[SANDBOX] in _REQUIRED or holds_boxes(settings[SANDBOX]))
        facts = evolve(self._facts(request, tool, guard), boxed=boxed)
        return decide(PermissionRequest(tool, request.arguments), policy, facts), facts, policy

    def holds(self, cwd: str) -> bool:
        """Whether this machine holds the boxes that the settings of a directory want."""
        return holds_boxes(self._here(cwd)[0][SANDBOX])

    def _looked_at(self, cwd: str) -> tuple[Settings, LocalPathGuard]:
        return self.settings(cwd), LocalPathGuard((cwd,), cwd)

    def _facts(self, request: CheckRequest, tool: ToolDescriptor, guard: LocalPathGuard) -> Facts:
        roles, ours = tool.roles, tool.source is ToolSource.BUILT_IN
        home = home_of(self.environ)
        paths = roles.paths(request.arguments)
        located = tuple(guard.locate_now(path if ours else at_home(path, home)) for path in paths)
        facts = Facts(located, cwd=request.cwd, roots=guard.roots)
        if not roles.runs(request.arguments) or not (ours or roles.reads_command(request.arguments)):
            return facts
        command = roles.command(request.arguments, tuple(where.path for where in located), request.cwd)
        if command is None:
            return facts
        report = read_command(Command.of(*command), self.parser, home)
        places = {path: guard.locate_now(path) for path in paths_to_follow(report)}
        strays = {pattern: guard.strays_now(pattern) for pattern in patterns_to_expand(report)}
        return evolve(facts, command=with_places(report, places, strays, guard))


def descriptor_of(
    name: str, arguments: JsonObject = EMPTY_OBJECT, profiles: tuple[Profile, ...] = ()
) -> ToolDescriptor:
    """Punie's own tool of that name; any other is taken for a tool of an MCP server or the IDE, with effects.

    Its schema is not known here, so that its parameters are those of the call. `profiles` are the user's, which are
    believed as about a server of the user's own.
    """
    own = OWN_TOOLS.get(name)
    if own is not None:
        return own
    server, joint, bare = name.partition("__")
    named = {"server": server, "name": bare} if joint else {}
    schema = {"properties": {name: _DESCRIBED.get(type(value), EMPTY_OBJECT) for name, value in arguments.items()}}
    source = ToolSource.MCP if joint else ToolSource.IDE
    others = OtherParties((*profiles, *tool_profiles()))
    return others.known(ToolDescriptor(name, parameters=schema, metadata=named, source=source))


_DESCRIBED: Mapping[type, Mapping[str, object]] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
}

WORDS_LIMIT = 200


def one_decision(decision: Decision) -> str:
    """The decision in one line."""
    parts = "; ".join(f"{_words(part.argv)}: {part.verdict}" for part in decision.parts)
    said = f"{decision.verdict}  {decision.rule}  {one_line(decision.reason, WORDS_LIMIT)}"
    return f"{said}  [{parts}]" if parts else said


def explained(request: CheckRequest, decision: Decision, facts: Facts, policy: Policy) -> str:
    """The steps of the decision, one on each line."""
    return "\n".join(display_safe(line) for line in _steps(request, decision, facts, policy)) + "\n"


def in_force(policy: Policy) -> str:
    """The mode, the rules and the protected paths."""
    lines = [*_policy(policy), *(f"protected   {path}" for path in policy.protected)]
    return "\n".join(display_safe(line) for line in lines) + "\n"


def _policy(policy: Policy) -> Iterator[str]:
    yield f"mode        {policy.mode.value}"
    yield f"rules       {len(policy.rules)}" + ("" if policy.rules else ": the mode decides")
    for rule in policy.rules:
        yield f"            {rule_words(rule)}, from {rule.origin}"


def _steps(request: CheckRequest, decision: Decision, facts: Facts, policy: Policy) -> Iterator[str]:
    yield f"call        {request.tool} {one_line(json_text(request.arguments), WORDS_LIMIT)}"
    yield f"directory   {request.cwd}"
    yield from _policy(policy)
    for where in facts.locations:
        yield f"path        {where.path} ({_place(inside=where.inside, secret=where.secret)})"
    reports = facts.command.parts if facts.command is not None else ()
    for place, part in enumerate(decision.parts):
        yield from _part(part, reports[place] if place < len(reports) else None)
    yield f"decision    {decision.verdict.value} by {decision.rule}: {decision.reason}"
    if facts.command is not None and decision.verdict is Verdict.ALLOW:
        yield f"box         {decision.box}: {decision.box.words}"


def _part(part: PartDecision, report: CommandPart | None) -> Iterator[str]:
    yield f"command     {_words(part.argv)}"
    if report is not None:
        yield f"            {report.standing.name.lower()}: {report.reason}"
        for use in report.paths:
            yield f"            {_use(use)}"
        for effect in sorted(report.effects, key=lambda effect: effect.name):
            yield f"            {effect.value}"
    yield f"            {part.verdict.value} by {part.rule}: {part.reason}"


def _use(use: PathUse) -> str:
    deep = " and what is below" if use.below else ""
    if use.where is None:
        return f"{use.effect.value}s {use.path}{deep} (nobody can tell where that leads)"
    return f"{use.effect.value}s {use.where.path}{deep} ({_place(inside=use.where.inside, secret=use.where.secret)})"


def _place(*, inside: bool, secret: bool) -> str:
    return ("inside" if inside else "outside") + (", may hold secrets" if secret else "")


def rule_words(rule: Rule) -> str:
    """The whole rule in one line."""
    said = [f"{rule.id}: {rule.decision.value} {rule.tool}"]
    if rule.command is not None:
        said.append(" ".join(_choice(choice) for choice in rule.command))
    if rule.path is not None:
        said.append(f"at {rule.path}")
    if rule.server is not None:
        said.append(f"of the server {rule.server}")
    if rule.modes:
        said.append(f"in the modes {', '.join(sorted(mode.value for mode in rule.modes))}")
    if not rule.boxed:
        said.append("without a box")
    return " ".join(said) + (f" ({rule.reason})" if rule.reason else "")


def _choice(words: tuple[str, ...]) -> str:
    return shlex.quote(words[0]) if len(words) == 1 else f"({'|'.join(shlex.quote(word) for word in words)})"


def _words(argv: tuple[str, ...]) -> str:
    return one_line(shlex.join(argv), WORDS_LIMIT)
