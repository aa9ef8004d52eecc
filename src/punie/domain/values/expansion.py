"""Variables in the definitions of servers (docs/interfaces.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import field, frozen

_REST = r"(?:(?!\$\{)[^}])*+"
_REFERENCE = re.compile(
    rf"\$\{{(?:(?P<input>input):(?P<id>{_REST})|(?P<env>env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*+)"
    rf"(?::-(?P<default>{_REST}))?)\}}"
)


LONGEST_VALUES = 1_048_576
"""Characters that may be put into one text: more than any system takes as one argument of a program."""


class ExpansionError(Exception):
    """A text refers to what is not there, or to more than will do; the sentence says what to do."""


@frozen
class Input:
    """A value that a definition asks a person for; `asks` is what it says about itself. `default` will do."""

    default: str | None = None
    asks: str = ""


@frozen
class Variables:
    """What `${...}` stands for: the environment, and the directories of the session and of the user.

    `${X}`, `${X:-default}`, `${env:X}`, `${workspaceFolder}`, `${workspaceFolderBasename}`, `${userHome}`,
    `${CLAUDE_PROJECT_DIR}`, `${input:ID}`. What is written in another form stays as it is, and what was put in is not
    looked at again. Nothing is put in where `expands` is False. `inputs` are those that the file defines.
    """

    environ: Mapping[str, str]
    workspace: str
    home: str
    expands: bool = True
    inputs: Mapping[str, Input] = field(factory=dict[str, Input])

    def expand(self, text: str) -> str:
        """The text with all of them put in. Raises `ExpansionError`."""
        if not self.expands:
            return text
        parts: list[str] = []
        end = size = 0
        for match in _REFERENCE.finditer(text):
            value = self._value(match)
            size += len(value)
            if size > LONGEST_VALUES:
                raise ExpansionError(f"what its variables stand for is longer than {LONGEST_VALUES} characters")
            parts += (text[end : match.start()], value)
            end = match.end()
        return "".join(parts) + text[end:]

    def _value(self, match: re.Match[str]) -> str:
        if match["input"] is not None:
            return self._input(match["id"])
        name, default = match["name"], match["default"]
        known = self.environ.get(name, "")
        if not known and match["env"] is None:
            known = {
                "workspaceFolder": self.workspace,
                "workspaceFolderBasename": self.workspace.replace("\\", "/").rstrip("/").rpartition("/")[2],
                "userHome": self.home,
                "CLAUDE_PROJECT_DIR": self.workspace,
            }.get(name, known)
        if known or (default is None and name in self.environ):
            return known
        if default is None:
            raise ExpansionError(f"the environment variable {name} is not set; set it, or write ${{{name}:-DEFAULT}}")
        return default

    def _input(self, name: str) -> str:
        asked = self.inputs.get(name, Input())
        if asked.default is not None:
            return asked.default
        told = f" ({asked.asks})" if asked.asks else ""
        raise ExpansionError(
            f"it needs the input {name!r}{told}, which Punie does not ask for; "
            f"write ${{env:NAME}} in place of ${{input:{name}}} and set NAME in the environment"
        )
