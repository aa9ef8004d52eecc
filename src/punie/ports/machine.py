"""Time and disk: clocks, caches, the process table and the keyring of this machine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import Protocol, TypeVar, runtime_checkable

from punie.domain.session.log import ProcessIdentity


@runtime_checkable
class Clock(Protocol):
    """Measures durations, and says when; lives as long as the process."""

    @abstractmethod
    def monotonic_s(self) -> float:
        """Seconds since some moment; never goes back."""
        ...

    @abstractmethod
    def epoch_s(self) -> float:
        """Seconds since 1970 in UTC, as the machine has it; may be set back, so never measure with it."""
        ...


Key_contra = TypeVar("Key_contra", bound=Hashable, contravariant=True)
Value = TypeVar("Value")


@runtime_checkable
class Cache(Protocol[Key_contra, Value]):
    """Keeps values until they expire; may be used from any thread. Times are in seconds of a clock that only goes on.

    An expired value is never given again, and not kept for ever either.
    """

    @abstractmethod
    def get(self, key: Key_contra) -> Value | None:
        """The value, or None where there is none that still holds."""
        ...

    @abstractmethod
    def set(self, key: Key_contra, value: Value, ttl: float | None = None) -> None:
        """Keep it for `ttl` seconds, or the cache's own time, in place of an earlier one; 0 or less keeps nothing."""
        ...

    @abstractmethod
    def invalidate(self, key: Key_contra) -> bool:
        """Forget that one; gives whether it still held."""
        ...

    @abstractmethod
    def clear(self) -> None:
        """Forget all of them."""
        ...


@runtime_checkable
class ProcessTable(Protocol):
    """Tells whether a process still lives; lives as long as the process that asks. Nothing here raises or waits."""

    @abstractmethod
    def own(self) -> ProcessIdentity:
        """The process that asks."""
        ...

    @abstractmethod
    def lives(self, process: ProcessIdentity) -> bool | None:
        """Whether that process, and not a later one of its number, lives; None where this machine cannot know."""
        ...


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
