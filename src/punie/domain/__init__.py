"""Values and pure functions, free of any framework.

The public names, for people who write a tool provider, a permission broker or an engine, are listed in `public`. This
package has them too and loads them when they are first asked for: its modules are imported by two threads while Punie
starts, and a package that imports its own modules at once can lock both threads out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from punie.domain.public import *  # noqa: F403 - the names are listed there only


def __getattr__(name: str) -> object:
    import punie.domain.public as public  # noqa: PLR0402 - `from punie.domain` would ask this function for it

    if name.startswith("_") or name not in vars(public):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(public, name)
