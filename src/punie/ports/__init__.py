"""Promises the inside asks of the outside, one noun a file.

The public names, for people who write a tool provider, a permission broker or an engine, stand in `public`; they are
found here too, and loaded when first asked for. Importing them here at once would do harm: the modules of this package
are loaded by two threads while Punie starts, and a package that waits for its own modules can lock both out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from punie.ports.public import *  # noqa: F403 - the list stands once, there


def __getattr__(name: str) -> object:
    import punie.ports.public as public  # noqa: PLR0402 - `from punie.ports` would ask this function for it

    if name not in public.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(public, name)
