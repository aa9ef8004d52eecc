"""`punie permissions check` and `explain`: decisions without a session."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from punie.adapters.local.machine import local_person
from punie.application.offer.misnamed import misnamed
from punie.application.tools.terminals.run_command import RunCommand
from punie.bootstrap.settings.settings import Settings
from punie.bootstrap.settings.sources import load_settings, stored_trust
from punie.commands.flags import settings_flags
from punie.commands.permissions.judging import CheckRequest, NotARequestError, PermissionJudge, parsed
from punie.commands.permissions.wording import explained, in_force, one_decision
from punie.commands.running import Exit, command_environ, person_is_here, start_logging, wrong
from punie.domain.errors import SettingsError
from punie.domain.permission.policy import Decision
from punie.domain.permission.rules import Verdict
from punie.domain.values.display import display_safe
from punie.mechanics.output import loss
from shellsight.parser.tree_sitter_bash import TreeSitterBashParser

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
    """Answer the requests on stdin, one a line, each before the next is read; returns the exit code.

    That is 2 where the settings of a request's directory do not load.
    """
    judge, here, faults = _judge(flags), _absolute(cwd), dict[str, None]()
    if person_is_here():
        sys.stderr.write(f"{_FORM} Ctrl-D ends.\n")
    for line in _lines(sys.stdin.buffer):
        if line.strip():
            sys.stdout.write(_answer(judge, line, here, faults, as_json=as_json) + "\n")
            if loss(sys.stdout):
                break
    return max((wrong(fault) for fault in faults), default=Exit.DONE)


def run_explain(*, what: str | None, arguments: str | None, cwd: str, **flags: Any) -> int:
    """Explain one decision; returns the exit code.

    `what` is a command line, or with `arguments` (JSON) a tool's name; None shows the policy in force.
    """
    judge, here = _judge(flags), _absolute(cwd)
    if what is None:
        sys.stdout.write(in_force(judge.settings(here).policy))
        return 0
    given = {"command": what} if arguments is None else parsed("the arguments are", arguments)
    tool = RunCommand.DESCRIPTOR.name if arguments is None else what
    for doubt in (*judge.settings(here).doubts, *misnamed([("the tool", tool)])):
        wrong(doubt)
    request = CheckRequest.of({"tool": tool, "arguments": given}, here)
    sys.stdout.write(explained(request, *judge.judge(request)))
    return 0


def _judge(given: Mapping[str, Any]) -> PermissionJudge:
    environ, flags = command_environ(), settings_flags(**given)
    log = start_logging(environ, None)
    trusted, parser = stored_trust(environ, log), TreeSitterBashParser()

    def settings(directory: str) -> Settings:
        return load_settings(environ, flags, directory, trusted, lambda: parser).meant_for(local_person())

    settings(os.devnull)  # a fault in the user's own settings is reported before anything is read
    return PermissionJudge(environ, settings, parser)


def _absolute(cwd: str) -> str:
    return os.path.abspath(cwd)  # noqa: PTH100 - the directory need not exist


_FORM = 'A request is one line, such as {"tool": "run_command", "arguments": {"command": "git status"}}.'


def _answer(judge: PermissionJudge, line: bytes, here: str, faults: dict[str, None], *, as_json: bool) -> str:
    """The answer to a line; what is wrong with the settings of its directory is added to `faults`."""
    try:
        request = CheckRequest.parse(_text_of(line), here)
    except NotARequestError as error:
        what = f"{display_safe(str(error))}. {_FORM}"
        return json.dumps({"error": what}) if as_json else f"error: {what}"
    try:
        decision, _, _ = judge.judge(request)
        held = as_json and judge.holds(request.cwd)
    except SettingsError as error:
        if request.cwd == here:
            raise
        # No session starts there, and the lines that follow may be about other directories.
        faults[str(error)] = None
        decision, held = Decision(Verdict.DENY, "built-in:settings", str(error)), False
    return json.dumps(encode_decision(decision, held=held)) if as_json else one_decision(decision)
