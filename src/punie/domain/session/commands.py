"""Slash commands: their descriptions, their use in a prompt, and the texts behind them (ACP: slash commands)."""

from __future__ import annotations

import re

from attrs import evolve, frozen

from punie.domain.values.content import Prompt, Text
from punie.domain.values.display import one_line

ARGUMENTS = "$ARGUMENTS"
"""The part of a prompt file that becomes the text typed after the command's name."""

DESCRIPTION_CHARS = 200
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_TYPED = re.compile(rf"\s*/({NAME.pattern})(?:\s+|\Z)")
FRONT_MATTER = re.compile(r"---[ \t]*\n(?P<head>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_SAID = re.compile(r"^(description|argument-hint)[ \t]*:[ \t]*(.*)$", re.MULTILINE)


@frozen
class CommandInfo:
    """A command as a person sees it; `hint` describes the text that may follow its name, None where none may."""

    name: str
    description: str
    hint: str | None = None


@frozen
class TypedCommand:
    """A prompt that begins with `/name`. `arguments` is the rest of its first text; the other blocks come with it."""

    name: str
    arguments: str


@frozen
class PromptFile:
    """A prompt file of the project: the command that it makes, and the text that the model gets."""

    info: CommandInfo
    text: str

    def filled(self, typed: TypedCommand, prompt: Prompt) -> Prompt:
        """The prompt for the model in place of the typed one; its other blocks stay."""
        text = self.text.replace(ARGUMENTS, typed.arguments)
        if ARGUMENTS not in self.text and typed.arguments:
            text = f"{text}\n\n{typed.arguments}"
        blocks = list(prompt.blocks)
        first = next(place for place, block in enumerate(blocks) if isinstance(block, Text))
        blocks[first] = Text(text)
        return evolve(prompt, blocks=tuple(blocks))


def typed_in(prompt: Prompt) -> TypedCommand | None:
    """The command with which the prompt's first text begins; None where it begins otherwise."""
    text = next((block.text for block in prompt.blocks if isinstance(block, Text)), "")
    found = _TYPED.match(text)
    return None if found is None else TypedCommand(found[1], text[found.end() :].strip())


def prompt_file(name: str, text: str) -> PromptFile | None:
    """The command of a file by its name, without the ending, and its text; None where these make no command.

    The description is the front matter's, else the first line.
    """
    body, said = text.lstrip("\ufeff").replace("\r\n", "\n"), dict[str, str]()
    head = FRONT_MATTER.match(body)
    if head is not None:
        said = {key: value.strip().strip("\"'") for key, value in _SAID.findall(head["head"])}
        body = body[head.end() :]
    body = body.strip()
    if not NAME.fullmatch(name) or not body:
        return None
    first = body.splitlines()[0].lstrip("# ").strip()
    description = one_line(said.get("description") or first or name, DESCRIPTION_CHARS)
    hint = one_line(said.get("argument-hint", ""), DESCRIPTION_CHARS)
    takes = hint or ("text" if ARGUMENTS in body else None)
    return PromptFile(CommandInfo(name, description, takes), body)
