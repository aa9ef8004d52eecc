"""How a model is reached; imports nothing heavy."""

from __future__ import annotations

from attrs import field, frozen


@frozen
class Connection:
    """What takes the place of the provider's own variables where they say nothing, or nothing else; both optional."""

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
