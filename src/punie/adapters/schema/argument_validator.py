"""Checks of schemas and arguments with jsonschema_rs."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from attrs import frozen

from punie.adapters.schema.problems import in_words, shortened
from punie.adapters.schema.references import SchemaReferences
from punie.domain.values.json_value import JsonObject, thaw_object
from punie.ports.tools import ArgumentValidator

if TYPE_CHECKING:
    from jsonschema_rs import FancyRegexOptions, RegexOptions, ValidationError

    Patterns: TypeAlias = RegexOptions | FancyRegexOptions

PROBLEM_LIMIT = 10
"""The problems that are named of one call; more do not help to mend it."""

SMALL_VALUES = 2_000
"""The largest number of values for which more than the first problem is named."""

SCHEMA_LIMIT_CHARS = 1_000_000
DRAFTS = (
    "http://json-schema.org/draft-04/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
"""The known values of `$schema`; the last one is the default."""

CACHE_LIMIT = 512
PATTERN_BUDGET_BYTES = 64_000_000
"""The memory limit for all compiled regular expressions of one schema."""

PATTERN_LIMIT_BYTES = 10_000_000
BACKTRACK_LIMIT = 100_000
"""The step limit of a regular expression with look-around or back references: about 2 ms, then it counts as failed."""


@frozen
class _Compiled:
    """The outcome of compiling a schema: a validator, or the reason why there is none."""

    validator: Any = None
    problem: str | None = None


class JsonSchemaRsValidator(ArgumentValidator):
    """Compiles each schema once and checks arguments against it; lives as long as the session.

    The draft is that of `$schema`, by default 2020-12; `format` is an annotation; no document is fetched or read.
    Regular expressions run in linear time, or with a step limit where they need look-around or back references. At most
    `CACHE_LIMIT` schemas are kept, the least recently used one being dropped first.
    """

    def __init__(self) -> None:
        # By identity for frozen trees, which cannot change; an entry keeps its tree, so that no other has its identity.
        # By text for the same schema in another object, as after another discovery.
        self._by_identity: OrderedDict[int, tuple[JsonObject, _Compiled]] = OrderedDict()
        self._compiled_by_text = lru_cache(CACHE_LIMIT)(_compile_text)

    def schema_problem(self, schema: JsonObject) -> str | None:
        """Why the schema cannot describe a tool's arguments, such as for excluding objects; None where it can."""
        return self._compiled(schema).problem

    def problems(self, schema: JsonObject, arguments: JsonObject) -> tuple[str, ...]:
        """At most `PROBLEM_LIMIT` sentences with the field and the expected value; empty where the arguments fit."""
        compiled = self._compiled(schema)
        if compiled.problem is not None:
            return (shortened(f"the tool's schema cannot be used: {compiled.problem}"),)
        try:
            plain = thaw_object(arguments)
            if compiled.validator.is_valid(plain):
                return ()
            return tuple(dict.fromkeys(in_words(error, schema, plain) for error in _errors(compiled.validator, plain)))
        except UnicodeEncodeError:
            return ("a string holds half of a surrogate pair, which is not valid Unicode: send whole characters",)
        except (ValueError, RecursionError) as error:
            return (shortened(f"the arguments cannot be checked: {error}"),)

    def _compiled(self, schema: JsonObject) -> _Compiled:
        known = self._by_identity.get(id(schema))
        if known is not None and known[0] is schema:
            self._by_identity.move_to_end(id(schema))
            return known[1]
        compiled = self._compiled_anew(schema)
        if isinstance(schema, MappingProxyType):
            self._by_identity[id(schema)] = (schema, compiled)
            if len(self._by_identity) > CACHE_LIMIT:
                self._by_identity.popitem(last=False)
        return compiled

    def _compiled_anew(self, schema: JsonObject) -> _Compiled:
        try:
            text = json.dumps(thaw_object(schema))
        except AttributeError:
            return _Compiled(problem="it is not a JSON object")
        except (TypeError, ValueError, RecursionError):
            return _Compiled(problem="it is not a JSON value that can be read (not JSON, or nested too deeply)")
        if len(text) > SCHEMA_LIMIT_CHARS:
            return _Compiled(
                problem=f"it is too large: {len(text)} characters of JSON, at most {SCHEMA_LIMIT_CHARS} fit"
            )
        return self._compiled_by_text(text)


def _errors(validator: Any, arguments: dict[str, object]) -> Iterator[ValidationError]:
    import jsonschema_rs

    # iter_errors collects every error before it gives the first: 14 s for a list of a million wrong items.
    if _is_small(arguments):
        yield from islice(validator.iter_errors(arguments), PROBLEM_LIMIT)
        return
    try:
        validator.validate(arguments)
    except jsonschema_rs.ValidationError as error:
        yield error


def _is_small(arguments: object) -> bool:
    ahead = [arguments]
    seen = 0
    while ahead and seen <= SMALL_VALUES:
        value = ahead.pop()
        inner: Collection[object] = ()
        if isinstance(value, dict):
            inner = cast("dict[str, object]", value).values()
        elif isinstance(value, list):
            inner = cast("list[object]", value)
        seen += len(inner)
        ahead.extend(islice(inner, SMALL_VALUES))
    return seen <= SMALL_VALUES


def _compile_text(text: str) -> _Compiled:
    schema: dict[str, object] = json.loads(text)
    references = SchemaReferences(schema)
    problem = _shape_problem(schema, references)
    if problem is not None:
        return _Compiled(problem=problem)
    import jsonschema_rs  # 14 ms of CPU: loaded with the first session, never before `initialize` is answered

    per_pattern = min(PATTERN_LIMIT_BYTES, PATTERN_BUDGET_BYTES // max(1, references.patterns))
    linear = jsonschema_rs.RegexOptions(size_limit=per_pattern)
    stepped = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT, size_limit=per_pattern)
    first = _compile_with(schema, linear)
    if first.problem is None:
        return first
    second = _compile_with(schema, stepped)
    return second if second.problem is None else first


def _compile_with(schema: dict[str, object], patterns: Patterns) -> _Compiled:
    import jsonschema_rs

    try:
        # The mask keeps the model's own values, which may be megabytes, out of the messages.
        validator = jsonschema_rs.validator_for(
            schema, validate_formats=False, retriever=_retrieve_nothing, pattern_options=patterns, mask="the value"
        )
    except jsonschema_rs.ValidationError as error:
        return _Compiled(problem=in_words(error))
    except (ValueError, jsonschema_rs.ReferencingError, RecursionError) as error:
        return _Compiled(problem=shortened(str(error).partition("\n")[0]))
    return _Compiled(validator)


def _retrieve_nothing(uri: str) -> Any:
    raise ValueError("only references inside the schema are followed")


def _shape_problem(schema: dict[str, object], references: SchemaReferences) -> str | None:
    kind = schema.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        return shortened(f"its type is {json.dumps(kind)}, but a tool's arguments are an object")
    draft = schema.get("$schema", DRAFTS[-1])
    if not isinstance(draft, str) or draft.removesuffix("#") not in DRAFTS:
        return shortened(f"its $schema, {draft!r}, names no known draft (4, 6, 7, 2019-09 or 2020-12)")
    remote = references.remote
    if remote is not None:
        return shortened(f"it refers to another document, {remote!r}; only references inside it are followed")
    if references.multiply:
        return "its references multiply so far that checking one value could take for ever"
    return None


def load_validator() -> None:
    """Load the library (5 MB, 20 ms) ahead of a client's schemas, which are checked in the event loop. Blocks."""
    JsonSchemaRsValidator().problems({}, {})
