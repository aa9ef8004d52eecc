"""Asking a person for leave."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from punie.domain.permission import PermissionOutcome, PermissionQuestion


@runtime_checkable
class PermissionBroker(Protocol):
    """Carries a question to whoever can answer it; lives as long as its session."""

    @abstractmethod
    async def ask(self, question: PermissionQuestion) -> PermissionOutcome:
        """Ask once and wait for the answer, however long the person thinks.

        Never raises for what the other side does: an error, a malformed answer or a closed connection is an outcome,
        and no outcome but `Selected` can allow anything. Several questions may be open at once.
        """
        ...
