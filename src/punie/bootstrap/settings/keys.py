"""The table of all settings: how each is read, what it means, what it is by default, and what a project may say of it.

What checks the files, what `punie config` shows, and the table in docs/settings.md all come from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from attrs import evolve, fields, frozen

from punie.bootstrap.settings.permissions import parse_mode
from punie.bootstrap.settings.values import (
    EngineChoice,
    Sandbox,
    parse_disclosure,
    parse_effort,
    parse_engine,
    parse_local,
    parse_models,
    parse_names,
    parse_positive,
    parse_registry,
    parse_sandbox,
    parse_share,
    parse_store,
    parse_text,
    parse_whole,
    parse_yes,
)
from punie.domain.model.choice import Effort
from punie.domain.permission.modes import Mode
from punie.domain.session.turn import TurnLimits
from punie.domain.tools.disclosure import DEFAULT_SHARE, DisclosureForm
from punie.domain.tools.discovery import LocalTools
from punie.domain.tools.execution import CallLimits, Limits

HIDDEN = "***"
"""What stands in the place of a secret."""


@frozen
class ProjectsSay:
    """What a project's file may do to a setting.

    `stricter` tells of a new value and the one in force whether it may replace it untrusted; None where none may.
    """

    words: str
    stricter: Callable[[object, object], bool] | None = None


_LOOSENESS = (LocalTools.NEVER, LocalTools.AUTO, LocalTools.ALWAYS)

ONCE_TRUSTED = ProjectsSay("may set it only once you trust its file")
ADDS = ProjectsSay("may add to it; what you named stays")
NEVER = ProjectsSay("has no say in it, trusted or not")
LOWERS = ProjectsSay(
    "may lower it, and raise it only once you trust its file",
    lambda new, now: parse_positive(new) < parse_positive(now),
)
MAY_SAY_NO = ProjectsSay("may say `false`, and `true` only once you trust its file", lambda new, _: not parse_yes(new))
LESS_LOCAL = ProjectsSay(
    "may allow less (`never` is least), and more only once you trust its file",
    lambda new, now: _LOOSENESS.index(parse_local(new)) < _LOOSENESS.index(parse_local(now)),
)
STRICTER_MODE = ProjectsSay(
    "may choose a stricter one, and a looser one only once you trust its file",
    lambda new, now: parse_mode(new).looseness < parse_mode(now).looseness,
)
IN_A_BOX = ProjectsSay(
    "may say `bubblewrap`, and `none` only once you trust its file",
    lambda new, _: parse_sandbox(new) is Sandbox.BUBBLEWRAP,
)
ADDS_STRICT_RULES = ProjectsSay("may add deny and ask rules, and allow rules only once you trust its file")


def plain(value: object) -> object:
    """A setting's value as JSON would have it."""
    if isinstance(value, (tuple, list, frozenset)):
        return [str(item) for item in cast("tuple[object, ...]", value)]
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


_OPEN_OPTIONS = frozenset(
    (
        "host",
        "hostaddr",
        "port",
        "dbname",
        "user",
        "sslmode",
        "connect_timeout",
        "application_name",
        "target_session_attrs",
    )
)


def without_password(url: object) -> object:
    """The URL of a database with its secrets hidden; `sqlite` where there is none.

    Of what follows the question mark only options are shown that cannot be secret.
    """
    if url is None:
        return "sqlite"
    try:
        parts = urlsplit(str(url))
        pairs = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return HIDDEN
    names, at, host = parts.netloc.rpartition("@")
    user, colon, _ = names.partition(":")
    shown = f"{user}:{HIDDEN}@{host}" if at and colon else parts.netloc
    options = [
        (key if key.isidentifier() else HIDDEN, value if key in _OPEN_OPTIONS else HIDDEN) for key, value in pairs
    ]
    query = urlencode(options, safe="*/,:")
    return urlunsplit(parts._replace(netloc=shown, query=query, fragment=HIDDEN if parts.fragment else ""))


@frozen
class Key:
    """One setting. `default` is parsed already; `by_default` says it in words where the value alone does not.

    `meaning` and `type` are Markdown of one line, `page` a page of docs/ that tells more. `shown` is the value as
    people may see it.
    """

    name: str
    parse: Callable[[object], object]
    type: str
    default: object
    meaning: str
    project: ProjectsSay = ONCE_TRUSTED
    by_default: str | None = None
    page: str | None = None
    shown: Callable[[object], object] = plain


_SHARE = "a number above 0 and at most 1"
_NUMBER = "a number above 0"
_WHOLE = "a whole number above 0"
_TOOLS = "a list of tool names (in a variable with commas between them)"
_YES = "`true` or `false`"
_CALL, _TURN = CallLimits(), TurnLimits()

_TABLE: tuple[Key, ...] = (
    Key(
        "model", parse_text, "a text", None,
        "`provider:name`, `script:FILE.json` or `direct`",
        by_default="`direct`", page="models.md",
    ),
    Key(
        "context_tokens", parse_whole, _WHOLE, None,
        "how many tokens the model's context holds; without it and for a model whose name says nothing the client is "
        "not told how full the context is",
        by_default="by the model's name",
    ),
    Key(
        "models", parse_models, "a list of models' names", (),
        "more names that a session may be switched to, beside `model` and `direct`",
        page="models.md#switching-in-a-session",
    ),
    Key(
        "effort", parse_effort, f"{', '.join(f'`{effort}`' for effort in Effort)} or `default`", None,
        "how hard the model thinks before it answers, where it can be told; `default` leaves it to the model",
        by_default="`default`", page="models.md#switching-in-a-session", shown=lambda value: plain(value or "default"),
    ),
    Key(
        "engine", parse_engine, "`pydantic-ai` or `openai-agents`", EngineChoice.PYDANTIC_AI,
        "whose library runs the models named `provider:name`; `openai-agents` is for OpenAI's protocols only (needs "
        "`punie[openai-agents]`)",
        page="openai-agents.md",
    ),
    Key(
        "tools.local", parse_local, "`auto`, `never` or `always`", LocalTools.AUTO,
        "what this machine may serve: what the client leaves open, nothing, or the extended set beside a client's "
        "capabilities too",
        LESS_LOCAL,
    ),
    Key("tools.disabled", parse_names, _TOOLS, (), "tools that are not offered", ADDS),
    Key(
        "tools.disclosure", parse_disclosure, "`auto`, `full`, `lines` or `names`", DisclosureForm.AUTO,
        "how the model is told of tools that are not Punie's own: `full` (every schema with every request), `lines` "
        "(name and one line, the schema once `search_tools` has loaded it), `names`, or `auto`: `full` up to "
        "`tools.disclosure_share`, beyond it the provider's own search where the model has one, else `lines`",
        page="servers.md#what-the-model-is-told-of-them",
    ),
    Key(
        "tools.disclosure_share", parse_share, _SHARE, DEFAULT_SHARE,
        "the part of the model's context that the schemas of others may take in the form `auto`",
    ),
    Key("tools.always", parse_names, _TOOLS, (), "tools that are always loaded in full, also with `*`"),
    Key(
        "tools.pipelines", parse_names, "a list of names (in a variable with commas between them)", (),
        "pipelines that come with Punie and are offered to the model, also with `*`; the project's and yours always "
        "are",
        page="pipelines.md",
    ),
    Key(
        "tools.code_mode", parse_yes, _YES, False,
        "whether the model is offered `run_code`: short programs over the tools (needs `punie[code]`)",
        MAY_SAY_NO, page="pipelines.md#code-mode",
    ),
    Key(
        "limits.time_s", parse_positive, _NUMBER, _CALL.time_s,
        "seconds that a call's effect may take; the person's thinking is not counted. A tool that declares an expected "
        "time has ten times that time, at least 30 seconds and at most this",
        LOWERS,
    ),
    Key(
        "limits.output_bytes", parse_whole, _WHOLE, _CALL.output_bytes,
        "bytes of a result that the model gets: head and tail, with a line that says what was left out and names a "
        "file with the whole, which `read_file` reads until the session ends. `read_file` gets 16 MiB unless this is "
        "set",
        LOWERS,
    ),
    Key(
        "limits.input_bytes", parse_whole, _WHOLE, _CALL.input_bytes,
        "bytes of a call's arguments as JSON; larger ones are refused before anything is asked",
        LOWERS,
    ),
    Key("limits.files_touched", parse_whole, _WHOLE, _CALL.files_touched, "paths that one call may name", LOWERS),
    Key(
        "limits.memory_mb", parse_whole, _WHOLE, _CALL.memory_mb,
        "MiB of data of each process that a command starts on this machine; best effort, on Linux only",
        LOWERS,
    ),
    Key(
        "limits.concurrent_calls", parse_whole, _WHOLE, Limits().concurrent_calls,
        "calls of a session that run at once; the next ones wait",
        LOWERS,
    ),
    Key(
        "turn.max_requests", parse_whole, _WHOLE, _TURN.max_requests,
        "model requests in one turn, after which it stops with `max_turn_requests`",
        LOWERS,
    ),
    Key(
        "turn.compact_share", parse_share, _SHARE, _TURN.compact_share,
        "the part of the model's context beyond which the conversation is summarised before the next request",
        page="sessions.md#long-conversations",
    ),
    Key(
        "permissions.mode", parse_mode, "`read-only`, `ask`, `accept-edits` or `auto`", Mode.ASK,
        "what runs without a question where no rule speaks",
        STRICTER_MODE, page="settings.md#permissions",
    ),
    Key(
        "permissions.sandbox", parse_sandbox, "`none` or `bubblewrap`", Sandbox.NONE,
        "with `bubblewrap`, commands that Punie starts itself run in a box",
        IN_A_BOX, page="permissions.md",
    ),
    Key("permissions.sandbox_network", parse_yes, _YES, False, "whether the box has a network", MAY_SAY_NO),
    Key(
        "servers.registry", parse_registry, "an https address, or an http address on this machine", None,
        "a registry of MCP servers, for `punie servers search` and `add`",
        NEVER, page="servers.md#adding-servers-that-somebody-described",
    ),
    Key(
        "sessions.keep", parse_yes, _YES, True, "whether sessions are kept beyond their process",
        MAY_SAY_NO, page="sessions.md",
    ),
    Key(
        "sessions.store", parse_store, "`sqlite` or the URL of a PostgreSQL database", None,
        "where sessions are kept: in the state file of this machine, or in a database that machines share, "
        "`postgresql://USER:PASSWORD@HOST/DATABASE` (needs `punie[postgres]`)",
        NEVER, by_default="`sqlite`", page="deployment.md", shown=without_password,
    ),
)  # fmt: skip

KEYS: Mapping[str, Key] = MappingProxyType({key.name: key for key in _TABLE})
"""Every setting that a file, a variable or a flag may give a value, by its dotted name."""

DEFAULTS: Mapping[str, object] = MappingProxyType({key.name: key.default for key in _TABLE})

RULES = Key(
    "permissions.rules", plain, "tables, each begun by `[[permissions.rules]]`", (),
    "your rules; those of all sources add up", ADDS_STRICT_RULES, page="settings.md#permissions",
)  # fmt: skip
"""Rules are read by themselves (`permission_settings`): they have no variable, and no value replaces another."""

PER_TOOL = "limits.tools."
CALL_BOUNDS = tuple(bound.name for bound in fields(CallLimits))
"""Those bounds that a single tool may have for itself."""


def variable_of(name: str) -> str:
    """The environment variable of a setting: `tools.local` is `PUNIE_TOOLS_LOCAL`."""
    return f"PUNIE_{name.upper().replace('.', '_')}"


def tool_and_bound(name: str) -> tuple[str, str]:
    """The tool and the bound of `limits.tools.NAME.BOUND`; no tool for any other key."""
    tool, _, bound = name.removeprefix(PER_TOOL).rpartition(".") if name.startswith(PER_TOOL) else ("", "", "")
    return tool, bound


def key_of(name: str) -> Key | None:
    """The setting of that dotted name, also of a single tool's bound; None where this version has none."""
    tool, bound = tool_and_bound(name)
    if not tool:
        return KEYS.get(name)
    if bound not in CALL_BOUNDS:
        return None
    general = KEYS[f"limits.{bound}"]
    return evolve(
        general,
        name=name,
        meaning=f"for `{tool}` alone: {general.meaning}",
        by_default=f"as `{general.name}`",
    )
