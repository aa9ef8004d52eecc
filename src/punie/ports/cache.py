"""Values that hold for a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import Protocol, TypeVar, runtime_checkable

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
