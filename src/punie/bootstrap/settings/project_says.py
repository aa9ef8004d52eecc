"""How far a project's file may change a setting, in words and as a rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from punie.bootstrap.settings.values import Sandbox
from punie.domain.tools.catalog import LocalTools


@frozen
class ProjectsSay:
    """How far a project's file may change a setting.

    `words` continue the sentence "a project ...". `stricter` is given the project's value and the one in force, and
    returns whether the value counts without trust; None where no value does.
    """

    words: str
    stricter: Callable[[Any, Any], bool] | None = None


_LOOSENESS = (LocalTools.NEVER, LocalTools.AUTO, LocalTools.ALWAYS)

ONCE_TRUSTED = ProjectsSay("may set it only once you trust its file")
ADDS = ProjectsSay("may add to it; what you named stays")
NEVER = ProjectsSay("has no say in it, trusted or not")
LOWERS = ProjectsSay(
    "may lower it, and raise it only once you trust its file", lambda new, now: now is None or new < now
)
RAISES = ProjectsSay("may raise it, and lower it only once you trust its file", lambda new, now: new > now)
MAY_SAY_NO = ProjectsSay("may say `false`, and `true` only once you trust its file", lambda new, _: not new)
LESS_LOCAL = ProjectsSay(
    "may allow less (`never` is least), and more only once you trust its file",
    lambda new, now: _LOOSENESS.index(new) < _LOOSENESS.index(now),
)
STRICTER_MODE = ProjectsSay(
    "may choose a stricter one, and a looser one only once you trust its file",
    lambda new, now: new.looseness < now.looseness,
)
_SANDBOXES = tuple(Sandbox)
IN_A_BOX = ProjectsSay(
    "may say a stricter one (`bubblewrap` is strictest), and a looser one only once you trust its file",
    lambda new, now: new is not Sandbox.NONE and _SANDBOXES.index(new) >= _SANDBOXES.index(now),
)
ADDS_STRICT_RULES = ProjectsSay("may add deny and ask rules, and allow rules only once you trust its file")
