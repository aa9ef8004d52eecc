"""Everything that can go wrong, sorted by who must hear it (DESIGN.md section 8).

`ToldToModel`   the turn goes on; the model reads the sentence as the tool's result.
`ToldToClient`  this request fails; the person at the IDE reads the sentence.
`Fault`         we or the world broke; people see a reference, the log has the rest.

Each class has a stable `code`, and its sentence says what happened, why, and what to do next.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from attrs import define, field

from punie.domain.values.display import one_line


class EngineErrorKind(StrEnum):
    """Why a model could not answer: the causes a person can act on (INTERFACES.md section 2, `fail.kind`)."""

    AUTH = "auth"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    CONNECTION = "connection"
    TIMEOUT = "timeout"
    CONTEXT = "context"
    CONTENT_FILTER = "content_filter"
    CONFIGURATION = "configuration"
    INTERNAL = "internal"


SHOWN = 12
"""Names that an error lists."""


class PunieError(Exception):
    """The root of the three families; never raised itself."""

    code: ClassVar[str] = "error"


class ToldToModel(PunieError):  # noqa: N818 - the family is named for its listener
    """A tool could not do what the model asked; becomes a failed tool result."""

    code: ClassVar[str] = "tool_error"


class ToldToClient(PunieError):  # noqa: N818 - the family is named for its listener
    """A request of the client could not be served; becomes a JSON-RPC error."""

    code: ClassVar[str] = "request_error"


class Fault(PunieError):  # noqa: N818 - the family is named for its listener
    """Something broke that neither the model nor the client can mend."""

    code: ClassVar[str] = "internal"


# --- told to the model -------------------------------------------------------------------------


@define
class UnknownToolError(ToldToModel):
    """The session offers no tool of that name (S0-33)."""

    code: ClassVar[str] = "unknown_tool"
    name: str
    near: tuple[str, ...] = ()

    def __str__(self) -> str:
        hint = f" Did you mean {', '.join(self.near)}?" if self.near else ""
        return f"There is no tool named {self.name!r} in this session.{hint} Use one of the offered tools."


@define
class AmbiguousToolError(ToldToModel):
    """Several servers have a tool of that bare name (R-11); `candidates` are the qualified ones."""

    code: ClassVar[str] = "ambiguous_tool"
    name: str
    candidates: tuple[str, ...]

    def __str__(self) -> str:
        names = ", ".join(self.candidates)
        return f"More than one server has a tool named {self.name!r}. Use one of these names: {names}."


@define
class UnknownServerError(ToldToModel):
    """No server of that name is configured."""

    code: ClassVar[str] = "unknown_server"
    name: str
    near: tuple[str, ...] = ()

    def __str__(self) -> str:
        hint = f"Did you mean {', '.join(self.near)}?" if self.near else "`punie servers list` names them all."
        return f"There is no server named {self.name!r}. {hint}"


@define
class ToolDisabledError(ToldToModel):
    """The tool exists but is switched off: in the settings, or for this session."""

    code: ClassVar[str] = "tool_disabled"
    name: str

    def __str__(self) -> str:
        where = "in the settings or for this session"
        return f"The tool {self.name!r} is disabled, {where}. Do without it, or ask the user to enable it."


@define
class ArgumentsRefusedError(ToldToModel):
    """The arguments do not fit the tool's schema; `problems` name the field and what was expected (S0-57)."""

    code: ClassVar[str] = "invalid_arguments"
    name: str
    problems: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"Invalid arguments for {self.name}: {'; '.join(self.problems)}. Nothing was run; correct and call again."
        )


@define
class LimitExceededError(ToldToModel):
    """The call is larger than the settings allow; refused before it ran (S2-33, S2-50)."""

    code: ClassVar[str] = "limit_exceeded"
    name: str
    problem: str

    def __str__(self) -> str:
        return f"{self.name} was not run: {self.problem}."


@define
class TimedOutError(ToldToModel):
    """The call took longer than the settings allow and was stopped (S2-33)."""

    code: ClassVar[str] = "timed_out"
    name: str
    limit_s: float
    begun: bool = False

    def __str__(self) -> str:
        so_far = "Its effect may be partly there; look before you call it again" if self.begun else "Nothing was done"
        return f"{self.name} was stopped: it took longer than {self.limit_s:g} s. {so_far}."


@define
class OutsideWorkspaceError(ToldToModel):
    """A path resolves outside the session's roots (R-16); refused before anything is asked or touched."""

    code: ClassVar[str] = "outside_workspace"
    path: str
    roots: tuple[str, ...] = ()

    def __str__(self) -> str:
        inside = f" Use a path inside {', '.join(self.roots)}." if self.roots else ""
        return f"{self.path} is outside the session's directories, so it was not touched.{inside}"


@define
class ToolFailedError(ToldToModel):
    """The tool ran, or tried to, and failed; `message` is a whole sentence for the model."""

    code: ClassVar[str] = "tool_failed"
    message: str

    def __str__(self) -> str:
        return self.message


@define
class FileChangedError(ToldToModel):
    """A file is not what the session last read or wrote of it (INTERFACES.md section 4); `what` has the diff."""

    code: ClassVar[str] = "file_changed"
    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path} changed since this session last saw it. {self.what}"


@define
class UnknownTerminalError(ToldToModel):
    """No terminal of that id belongs to this session, or it was released."""

    code: ClassVar[str] = "unknown_terminal"
    terminal_id: str

    def __str__(self) -> str:
        return (
            f"There is no terminal {self.terminal_id!r} in this session; it may have been released. "
            "run_command with background=true starts one and answers its id."
        )


@define
class UnsupportedHereError(ToldToModel):
    """This machine or this client cannot do that at all."""

    code: ClassVar[str] = "unsupported"
    message: str

    def __str__(self) -> str:
        return self.message


# --- told to the client ------------------------------------------------------------------------


@define
class UnknownSessionError(ToldToClient):
    """No open session has that id (M-12)."""

    code: ClassVar[str] = "unknown_session"
    session_id: str = field(repr=False)

    def __str__(self) -> str:
        return (
            "There is no open session with that id; it may be closed. Load it where it is kept (session/list, or "
            "`punie sessions list`), or open a new one."
        )


@define
class SessionBusyError(ToldToClient):
    """A prompt is running in that session; one at a time."""

    code: ClassVar[str] = "busy"
    session_id: str = field(repr=False)

    def __str__(self) -> str:
        return (
            "A prompt is already running in this session. Wait for its answer or send session/cancel, then try again."
        )


@define
class SessionHeldError(ToldToClient):
    """Another process has that session open; `holder` says which, in words."""

    code: ClassVar[str] = "session_held"
    session_id: str = field(repr=False)
    holder: str

    def __str__(self) -> str:
        return f"The session is open in {self.holder}. Close it there, or go on with a fork of it."


@define
class TooManySessionsError(ToldToClient):
    """As many sessions are open as may be, and none of them can be closed to make room."""

    code: ClassVar[str] = "too_many_sessions"
    limit: int

    def __str__(self) -> str:
        return (
            f"{self.limit} sessions are open here, which is as many as may be, and each of them is in use. Close one "
            "(session/close; it stays in session/list), then try again."
        )


@define
class LeaseLostError(ToldToClient):
    """Another process took the session over; what this one still had to add to it was not written."""

    code: ClassVar[str] = "lease_lost"
    session_id: str = field(repr=False)

    def __str__(self) -> str:
        return "Another process has taken this session over, so it cannot go on here. Load it again, or open a new one."


@define
class SessionStoreError(ToldToClient):
    """Sessions cannot be kept or read; `reason` is in words for a person, `advice` is what may be done about it."""

    code: ClassVar[str] = "session_store"
    reason: str
    advice: str = "Make room or mend the state file"

    def __str__(self) -> str:
        return f"The stored sessions cannot be used: {self.reason}. {self.advice}, then try again."


@define
class UnknownModelError(ToldToClient):
    """The session cannot be switched to a model of that name; `offered` are those that it can."""

    code: ClassVar[str] = "unknown_model"
    name: str
    offered: tuple[str, ...] = ()

    def __str__(self) -> str:
        there = f" It offers {', '.join(self.offered[:SHOWN])}{' and more' * (len(self.offered) > SHOWN)}."
        return (
            f"This session offers no model named {one_line(self.name, 200)!r}, so it keeps the one it has."
            f"{there if self.offered else ''} The setting `models` adds names."
        )


@define
class UnknownEffortError(ToldToClient):
    """The model in use cannot be told to think so hard."""

    code: ClassVar[str] = "unknown_effort"
    effort: str
    model: str

    def __str__(self) -> str:
        return (
            f"The model {self.model!r} cannot be told to think with the effort {one_line(self.effort, 40)!r}. "
            "Choose one that the session offers, or another model."
        )


@define
class SettingsError(ToldToClient):
    """The settings do not load: the door stays closed, and the file and the reason are named."""

    code: ClassVar[str] = "settings"
    source: str
    reason: str

    def __str__(self) -> str:
        return f"The settings in {self.source} cannot be used: {self.reason}. Correct them and try again."


@define
class EngineError(ToldToClient):
    """The model could not be reached or refused; `kind` is one of `EngineErrorKind`'s values."""

    code: ClassVar[str] = "engine"
    kind: str
    cause: str
    next_step: str = ""

    def __str__(self) -> str:
        return f"{self.cause} {self.next_step}".strip()


@define
class UnreadableSnapshotError(EngineError):
    """An engine cannot read its memory of a session, which then goes on from the session's log (ports/engine)."""

    code: ClassVar[str] = "unreadable_snapshot"
    kind: str = "configuration"
    cause: str = "The stored memory of this session cannot be read."
    next_step: str = "Open a new session."


# --- faults ------------------------------------------------------------------------------------


@define
class InternalFault(Fault):
    """A bug of ours; the log has the traceback beside `reference`."""

    code: ClassVar[str] = "internal"
    reference: str

    def __str__(self) -> str:
        return f"Punie failed internally (reference {self.reference}); the log has the details under that reference."
