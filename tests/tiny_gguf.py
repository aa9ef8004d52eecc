"""A GGUF file with random weights, made in a moment: it knows nothing, and answers like any model of its kind.

The format is that of llama.cpp: a header, typed key-value pairs, a table of tensors, then their aligned data, all
little-endian. The model has Llama's architecture, one layer, and a vocabulary of single bytes and a few pairs.
"""

from __future__ import annotations

import random
import string
import struct
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

MAGIC = b"GGUF"
VERSION = 3
ALIGNMENT = 32
F32 = 0

_U32, _I32, _FLOAT, _BOOL, _STRING, _ARRAY, _U64 = 4, 5, 6, 7, 8, 9, 10

Value = int | float | str | Sequence[int] | Sequence[float] | Sequence[str]

NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
"""Kinds of tokens."""

ENDINGS = [f'{letter}"' for letter in string.ascii_letters]
"""Tokens that end a JSON string: so many of them that chance takes one soon."""

EMBEDDING, FEED_FORWARD, HEADS = 32, 32, 1

OPINIONATED, INDIFFERENT = 0.4, 0.02
"""How far weights spread; small in the last layer, so that every token comes up and a text ends soon."""


def tiny_model(
    path: Path, *, context_tokens: int = 4096, seed: int = 7, extra: Mapping[str, Value] | None = None
) -> Path:
    """Write the model to `path`; `extra` are more pairs, or others."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *ENDINGS]
    pairs: dict[str, Value] = {
        "general.architecture": "llama",
        "general.name": "tiny",
        "llama.block_count": 1,
        "llama.context_length": context_tokens,
        "llama.embedding_length": EMBEDDING,
        "llama.feed_forward_length": FEED_FORWARD,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": EMBEDDING // HEADS,
        "llama.vocab_size": len(tokens),
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [0.0] * len(tokens),
        "tokenizer.ggml.token_type": [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * len(ENDINGS)],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_space_prefix": False,
    }
    pairs |= extra or {}
    write_gguf(path, pairs, _tensors(len(tokens)), random.Random(seed))  # noqa: S311 - weights, no secrets
    return path


def _tensors(vocabulary: int) -> dict[str, tuple[int, ...]]:
    square = (EMBEDDING, EMBEDDING)
    return {
        "token_embd.weight": (EMBEDDING, vocabulary),
        "output_norm.weight": (EMBEDDING,),
        "output.weight": (EMBEDDING, vocabulary),
        "blk.0.attn_norm.weight": (EMBEDDING,),
        "blk.0.attn_q.weight": square,
        "blk.0.attn_k.weight": square,
        "blk.0.attn_v.weight": square,
        "blk.0.attn_output.weight": square,
        "blk.0.ffn_norm.weight": (EMBEDDING,),
        "blk.0.ffn_gate.weight": (EMBEDDING, FEED_FORWARD),
        "blk.0.ffn_up.weight": (EMBEDDING, FEED_FORWARD),
        "blk.0.ffn_down.weight": (FEED_FORWARD, EMBEDDING),
    }


def write_gguf(
    path: Path, pairs: Mapping[str, Value], tensors: Mapping[str, tuple[int, ...]], numbers: random.Random
) -> None:
    """Write the file, its weights drawn from `numbers`."""
    head = MAGIC + struct.pack("<IQQ", VERSION, len(tensors), len(pairs))
    head += b"".join(_text(key) + _typed(value) for key, value in pairs.items())
    data = b""
    for name, shape in tensors.items():
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, F32, len(data))
        spread = INDIFFERENT if name == "output.weight" else OPINIONATED
        data += _padded(_weights(shape, spread, numbers))
    path.write_bytes(_padded(head) + data)


def _weights(shape: tuple[int, ...], spread: float, numbers: random.Random) -> bytes:
    count = 1
    for size in shape:
        count *= size
    return array("f", (numbers.gauss(0.0, spread) for _ in range(count))).tobytes()


def _typed(value: Value) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _text(value)
    if isinstance(value, bool):
        return struct.pack("<I?", _BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", _U32, value)
    if isinstance(value, float):
        return struct.pack("<If", _FLOAT, value)
    first = value[0]
    if isinstance(first, str):
        return struct.pack("<IIQ", _ARRAY, _STRING, len(value)) + b"".join(_text(str(item)) for item in value)
    kind, code = (_I32, "i") if isinstance(first, int) else (_FLOAT, "f")
    return struct.pack(f"<IIQ{len(value)}{code}", _ARRAY, kind, len(value), *value)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % ALIGNMENT)
