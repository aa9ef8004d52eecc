"""The packaged script that stands for a model: filled in for this machine, and written where the agent can read it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from attrs import frozen

MODEL_PROMPTS = (
    "Use the IDE's tools to find out what is wrong in {target}, and mend one thing.",
    "Now run the tests, or any check that proves it, and tell me the outcome in two sentences.",
)
DIRECT_PROMPTS = (
    '/call find_problems {"path": "."}',
    "/write {note}\nWritten by the demo.\n",
)


@frozen
class Play:
    """What the person says, prompt by prompt, and which model answers."""

    prompts: tuple[str, ...]
    model: str


def scripted(folder: Path, *, in_place: bool, note: str) -> Play:
    """The packaged script as a file below `folder`."""
    name = "script_in_place.json" if in_place else "script.json"
    packaged = json.loads(files("punie_ide.demo").joinpath(name).read_text(encoding="utf-8"))
    filled = cast("dict[str, Any]", _fill(packaged, {"{python}": sys.executable, "{note}": note}))
    target = folder / "script.json"
    target.write_text(json.dumps(filled), encoding="utf-8")
    return Play(tuple(filled["prompts"]), f"script:{target}")


def modelled(model: str, *, target: str, note: str) -> Play:
    """Plain prompts for a model of the user's; commands where there is none."""
    prompts = DIRECT_PROMPTS if model == "direct" else MODEL_PROMPTS
    return Play(tuple(prompt.replace("{target}", target).replace("{note}", note) for prompt in prompts), model)


def _fill(value: object, words: Mapping[str, str]) -> object:
    """The tree with its placeholders replaced in every text."""
    if isinstance(value, dict):
        return {key: _fill(item, words) for key, item in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [_fill(item, words) for item in cast("list[object]", value)]
    if isinstance(value, str):
        for placeholder, word in words.items():
            value = value.replace(placeholder, word)
    return value
