"""A cache in memory whose entries expire each in its own time."""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

from attrs import define, field, frozen

from punie.adapters.local.clock import LocalClock
from punie.domain.servers.server import DEFAULT_TTL_S
from punie.ports.machine import Cache, Clock

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@frozen
class _Entry(Generic[Value]):
    value: Value
    expires_s: float


@define(eq=False)
class TTLCache(Cache[Key, Value]):
    """Lives as long as its owner; `default_ttl` is in seconds, five minutes where none is given.

    Whatever has expired goes at the first use after that, so no more is kept than was set within the longest time.
    """

    default_ttl: float = DEFAULT_TTL_S
    clock: Clock = field(factory=LocalClock)
    _entries: dict[Key, _Entry[Value]] = field(factory=dict, init=False)
    _sweep_s: float = field(default=math.inf, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def get(self, key: Key) -> Value | None:
        with self._lock:
            self._sweep()
            entry = self._entries.get(key)
            return None if entry is None else entry.value

    def set(self, key: Key, value: Value, ttl: float | None = None) -> None:
        kept_s = self.default_ttl if ttl is None else ttl
        with self._lock:
            now = self._sweep()
            self._entries.pop(key, None)
            if kept_s > 0:
                self._entries[key] = _Entry(value, now + kept_s)
                self._sweep_s = min(self._sweep_s, now + kept_s)

    def invalidate(self, key: Key) -> bool:
        with self._lock:
            self._sweep()
            return self._entries.pop(key, None) is not None

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._sweep_s = math.inf

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)

    def _sweep(self) -> float:
        """Drop what has expired, if anything has; gives the time."""
        now = self.clock.monotonic_s()
        if now >= self._sweep_s:
            self._entries = {key: entry for key, entry in self._entries.items() if now < entry.expires_s}
            self._sweep_s = min((entry.expires_s for entry in self._entries.values()), default=math.inf)
        return now
