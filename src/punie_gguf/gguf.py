"""The head of a GGUF file: whether the file is one, and the needs of its model. The weights are not read."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from attrs import frozen

from punie.api import EngineError, EngineErrorKind

MAGIC: Final = b"GGUF"
MIN_CONTEXT_TOKENS: Final = 4_096
MAX_CONTEXT_TOKENS: Final = 32_768
MEMORY_SHARE: Final = 0.8
"""Of the memory that is free, for the model and its context together."""

_MAX_PAIRS: Final = 65_536
_MAX_KEY_BYTES: Final = 65_535
_MAX_TEXT_BYTES: Final = 1_048_576
_NUMBERS: Final = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
_TEXT: Final = 8
_ARRAY: Final = 9
_CACHE_BYTES: Final = 2
"""Of one number in the cache of keys and values."""

_UNKNOWN_CACHE_BYTES: Final = 131_072
"""Of one token in a model that does not say: that of one with eight billion weights."""

Value = str | int | float | bool | None


@frozen
class ModelFile:
    """The facts of a file before it is loaded; `context_tokens` is the length that the model was trained for."""

    path: str
    size_bytes: int
    context_tokens: int
    cache_bytes: int
    """Memory that one token of the context takes, about."""

    @property
    def name(self) -> str:
        """Without its folder."""
        return Path(self.path).name

    def context_within(self, free_bytes: int | None) -> int:
        """How long a context to ask for: what the model takes, within reason and within the memory that is free."""
        wanted = min(self.context_tokens, MAX_CONTEXT_TOKENS)
        while free_bytes is not None and wanted > MIN_CONTEXT_TOKENS and not self.fits(free_bytes, wanted):
            wanted = max(wanted // 2, MIN_CONTEXT_TOKENS)
        return wanted

    def fits(self, free_bytes: int, context_tokens: int) -> bool:
        """Whether model and context leave a part of that memory free."""
        return self.size_bytes + context_tokens * self.cache_bytes <= free_bytes * MEMORY_SHARE


class _NotGgufError(Exception):
    pass


def read_model_file(path: str) -> ModelFile:
    """Look at the file. Raises `EngineError` (`configuration`): it is not there, not readable, or no GGUF file."""
    try:
        with Path(path).open("rb") as file:
            pairs = _pairs(file)
            return _described(path, Path(path).stat().st_size, pairs)
    except (_NotGgufError, struct.error) as error:
        raise _unusable(path, f"is not a GGUF file that can be read{_why(error)}") from error
    except (OSError, ValueError) as error:
        raise _unusable(path, f"cannot be opened ({getattr(error, 'strerror', None) or error})") from error


def _why(error: Exception) -> str:
    return f" ({error})" if isinstance(error, _NotGgufError) and str(error) else " (it ends too early)"


def _unusable(path: str, why: str) -> EngineError:
    return EngineError(
        EngineErrorKind.CONFIGURATION.value,
        f"The model file {path} {why}.",
        "Name a model as gguf:/path/to/model.gguf.",
    )


def _described(path: str, size_bytes: int, pairs: dict[str, Value | list[int]]) -> ModelFile:
    kind = pairs.get("general.architecture")
    if not isinstance(kind, str):
        raise _NotGgufError("it names no architecture, so it holds no model")

    def number(key: str) -> int | None:
        found = pairs.get(f"{kind}.{key}")
        return found if type(found) is int and found > 0 else None

    trained = number("context_length") or MIN_CONTEXT_TOKENS
    blocks, heads = number("block_count"), number("attention.head_count")
    of_each = pairs.get(f"{kind}.attention.head_count_kv")
    kept_heads = (
        sum(of_each) if isinstance(of_each, list) else (number("attention.head_count_kv") or heads or 0) * (blocks or 0)
    )
    width = number("attention.key_length") or ((number("embedding_length") or 0) // heads if heads else 0)
    return ModelFile(path, size_bytes, trained, 2 * kept_heads * width * _CACHE_BYTES or _UNKNOWN_CACHE_BYTES)


def _pairs(file: BinaryIO) -> dict[str, Value | list[int]]:
    """The pairs before those of the tokenizer, which are long and come last."""
    if file.read(4) != MAGIC:
        raise _NotGgufError("it does not begin like one")
    version, _, count = struct.unpack("<IQQ", _exactly(file, 20))
    if version not in {2, 3}:
        raise _NotGgufError(f"its version is {version}, and 2 and 3 are known")
    if count > _MAX_PAIRS:
        raise _NotGgufError("it claims more entries than any has")
    pairs: dict[str, Value | list[int]] = {}
    for _ in range(count):
        key = _text(file, _MAX_KEY_BYTES)
        if key.startswith("tokenizer.") and "general.architecture" in pairs:
            break
        pairs[key] = _value(file)
    return pairs


def _value(file: BinaryIO) -> Value | list[int]:
    (kind,) = struct.unpack("<I", _exactly(file, 4))
    if kind != _ARRAY:
        return _text(file, _MAX_TEXT_BYTES) if kind == _TEXT else _number(file, kind)
    inner, length = struct.unpack("<IQ", _exactly(file, 12))
    if inner == _ARRAY or (inner not in _NUMBERS and inner != _TEXT) or length > _MAX_TEXT_BYTES:
        raise _NotGgufError("it holds a list of a form that is not known")
    return [item for item in _items(file, inner, length) if type(item) is int]


def _items(file: BinaryIO, kind: int, length: int) -> Iterator[Value]:
    for _ in range(length):
        yield _text(file, _MAX_TEXT_BYTES) if kind == _TEXT else _number(file, kind)


def _number(file: BinaryIO, kind: int) -> Value:
    if kind not in _NUMBERS:
        raise _NotGgufError(f"it holds a value of the unknown kind {kind}")
    form = _NUMBERS[kind]
    (value,) = struct.unpack(form, _exactly(file, struct.calcsize(form)))
    return value


def _text(file: BinaryIO, limit: int) -> str:
    (length,) = struct.unpack("<Q", _exactly(file, 8))
    if length > limit:
        raise _NotGgufError("it holds a text that is too long")
    return _exactly(file, length).decode("utf-8", "replace")


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise _NotGgufError("it ends too early")
    return data
