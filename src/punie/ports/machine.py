"""Time and disk: clocks, caches, the process table and the keyring of this machine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import Protocol, TypeVar, runtime_checkable

from punie.domain.session.log import ProcessIdentity


@runtime_checkable
class Clock(Protocol):
    """Measures durations and tells the time; lives as long as the process."""

    @abstractmethod
    def monotonic_s(self) -> float:
        """Seconds since an arbitrary moment; never goes back."""

    @abstractmethod
    def epoch_s(self) -> float:
        """Seconds since 1970 in UTC, as the machine has it; may be set back, so never measure with it."""


Key_contra = TypeVar("Key_contra", bound=Hashable, contravariant=True)
Value = TypeVar("Value")


@runtime_checkable
class Cache(Protocol[Key_contra, Value]):
    """Keeps values until they expire; may be used from any thread. Times are in seconds of a monotonic clock.

    An expired value is never returned, and its memory is freed in time.
    """

    @abstractmethod
    def get(self, key: Key_contra) -> Value | None:
        """The value, or None where there is none that has not expired."""

    @abstractmethod
    def set(self, key: Key_contra, value: Value, ttl: float | None = None) -> None:
        """Keep a value for `ttl` seconds, or the cache's own time, in place of an earlier one; 0 or less keeps none."""

    @abstractmethod
    def invalidate(self, key: Key_contra) -> bool:
        """Forget the value of a key; returns whether there was one that had not expired."""

    @abstractmethod
    def clear(self) -> None:
        """Forget all values."""


@runtime_checkable
class ProcessTable(Protocol):
    """Tells whether a process still lives; lives as long as the process that asks. Nothing here raises or waits."""

    @abstractmethod
    def own(self) -> ProcessIdentity:
        """The process that asks."""

    @abstractmethod
    def lives(self, process: ProcessIdentity) -> bool | None:
        """Whether that process, and not a later one of its number, lives; None where this machine cannot know."""


@runtime_checkable
class KeyVault(Protocol):
    """Keeps secrets by name, also after this process; shared by all processes of this user.

    Every method blocks, for a bounded time, since a locked vault may ask its owner; and never raises: a vault that
    cannot be used keeps nothing and knows nothing. A secret is never logged.
    """

    @abstractmethod
    def put(self, name: str, secret: str) -> bool:
        """Keep the secret in place of an earlier one; True only if it can be read back."""

    @abstractmethod
    def get(self, name: str) -> str | None:
        """The secret of that name; None where there is none, or it cannot be read now."""

    @abstractmethod
    def forget(self, name: str) -> bool:
        """Remove the secret of that name; False where there was none, or it could not be removed."""
