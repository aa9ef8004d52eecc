"""`punie permissions check` and `explain`: decisions without a session."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import BinaryIO

from attrs import define

from punie.application.tools.terminals.run_command import RunCommand
from punie.bootstrap.settings.settings import Settings, load_settings
from punie.bootstrap.settings.trust import stored_trust
from punie.commands.flags import settings_flags
from punie.commands.permissions.judge import (
    CheckRequest,
    NotARequestError,
    PermissionJudge,
    explained,
    in_force,
    one_decision,
)
from punie.commands.running import command_environ, start_logging, wrong
from punie.domain.errors import SettingsError
from punie.domain.permission.modes import Verdict
from punie.domain.permission.policy import Decision
from punie.domain.values.display import display_safe
from shellsight.parser.tree_sitter_bash import TreeSitterBashParser

EXIT_INTERRUPTED = 130
LINE_LIMIT_BYTES = 1_048_576
"""A longer line is no request."""


@define
class PermissionsMode:
    """One run of `check` or `explain`; each method returns the exit code."""

    judge: PermissionJudge
    here: str
    write: Callable[[str], None]

    def check(self, lines: Iterator[bytes], *, as_json: bool) -> int:
        """Answer one request a line, each before the next is read."""
        for line in lines:
            if line.strip():
                self.write(self._answer(line, as_json=as_json) + "\n")
        return 0

    def explain(self, request: CheckRequest) -> int:
        """Show how the decision on one call comes about."""
        self.write(explained(request, *self.judge.judge(request)))
        return 0

    def _answer(self, line: bytes, *, as_json: bool) -> str:
        try:
            request = CheckRequest.parse(_text_of(line), self.here)
        except NotARequestError as error:
            what = display_safe(str(error))
            return json.dumps({"error": what}) if as_json else f"error: {what}"
        try:
            decision, _, _ = self.judge.judge(request)
        except SettingsError as error:
            if request.cwd == self.here:
                raise
            # No session starts there, and the lines that follow may be about other directories.
            decision = Decision(Verdict.DENY, "built-in:settings", str(error))
        return json.dumps(encode_decision(decision)) if as_json else one_decision(decision)


def encode_decision(decision: Decision) -> dict[str, object]:
    """A decision as programs read it."""
    parts = [
        {"argv": part.argv, "verdict": part.verdict, "rule": part.rule, "reason": display_safe(part.reason)}
        for part in decision.parts
    ]
    return {
        "verdict": decision.verdict,
        "rule": decision.rule,
        "reason": display_safe(decision.reason),
        "parts": parts,
    }


def _text_of(line: bytes) -> str:
    if len(line) > LINE_LIMIT_BYTES:
        raise NotARequestError(f"it is longer than {LINE_LIMIT_BYTES} bytes")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotARequestError("it is not UTF-8") from error


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """The stream's lines; of one that is too long only the beginning, and the rest is skipped."""
    while line := stream.readline(LINE_LIMIT_BYTES + 1):
        rest = line
        while rest and not rest.endswith(b"\n") and len(rest) > LINE_LIMIT_BYTES:
            rest = stream.readline(LINE_LIMIT_BYTES + 1)
        yield line


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _mode(cwd: str, flags: Mapping[str, str | None]) -> PermissionsMode:
    environ = command_environ()
    log = start_logging(environ, None)
    trusted, parser = stored_trust(environ, log), TreeSitterBashParser()

    def settings(directory: str) -> Settings:
        return load_settings(environ, flags, directory, trusted, lambda: parser)

    settings(os.devnull)  # what is wrong with the user's own is said before anything is read
    return PermissionsMode(PermissionJudge(environ, settings, parser), os.path.abspath(cwd), _write)  # noqa: PTH100 - it need not exist


def run_check(*, as_json: bool, cwd: str, mode: str | None, allow: Sequence[str], deny: Sequence[str]) -> int:
    """Answer the requests on stdin; returns the exit code."""
    flags = settings_flags(mode=mode, allow=allow, deny=deny)
    return _guarded(lambda: _mode(cwd, flags).check(_lines(sys.stdin.buffer), as_json=as_json))


def run_explain(
    *,
    what: str | None,
    arguments: str | None,
    cwd: str,
    mode: str | None,
    allow: Sequence[str],
    deny: Sequence[str],
) -> int:
    """Explain one decision; returns the exit code.

    `what` is a command line, or with `arguments` (JSON) a tool's name; None shows the policy in force.
    """
    flags = settings_flags(mode=mode, allow=allow, deny=deny)
    return _guarded(lambda: _explain(_mode(cwd, flags), what, arguments))


def _explain(mode: PermissionsMode, what: str | None, arguments: str | None) -> int:
    if what is None:
        mode.write(in_force(mode.judge.settings(mode.here).policy))
        return 0
    request: dict[str, object] = {"tool": RunCommand.DESCRIPTOR.name, "arguments": {"command": what}}
    if arguments is not None:
        request = {"tool": what, "arguments": _object(arguments)}
    return mode.explain(CheckRequest.of(request, mode.here))


def _object(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotARequestError(f"the arguments are not JSON ({error})") from error


def _guarded(run: Callable[[], int]) -> int:
    try:
        return run()
    except (SettingsError, NotARequestError) as error:
        return wrong(str(error))
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read the answers has gone; nothing may be written at the exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
