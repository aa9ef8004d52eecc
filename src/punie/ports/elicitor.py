"""Asking a person for facts, field by field; permission is another matter (`PermissionBroker`)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from punie.domain.elicitation import Elicitation, ElicitationAnswer


@runtime_checkable
class Elicitor(Protocol):
    """Carries forms to a person who can fill them in; lives as long as its session."""

    @abstractmethod
    async def ask(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Ask once and wait for the answer, however long the person thinks.

        Never raises for what the other side does: an error, a malformed answer or a closed connection is a
        cancellation. Whether the content fits the schema is for the asker to check. Cancelled, it takes the question
        back. Several may be open at once.
        """
        ...
