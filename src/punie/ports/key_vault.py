"""Where a person's keys lie under the system's own protection."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable


@runtime_checkable
class KeyVault(Protocol):
    """Keeps secrets by name, also after this process; shared by all processes of this user.

    Every method blocks, for a bounded time, since a locked vault may ask its owner; and never raises: a vault that
    cannot be used keeps nothing and knows nothing. A secret is never logged.
    """

    @abstractmethod
    def put(self, name: str, secret: str) -> bool:
        """Keep the secret in place of an earlier one; True only if it can be read back."""
        ...

    @abstractmethod
    def get(self, name: str) -> str | None:
        """The secret of that name; None where there is none, or it cannot be had now."""
        ...

    @abstractmethod
    def forget(self, name: str) -> bool:
        """Keep it no longer; False where nothing was there, or it could not be removed."""
        ...
