"""A person whose answers were written down before: for tests of tools, engines and plug-ins."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import anyio
import anyio.lowlevel
from attrs import define, field

from punie.domain.permission.flow import Dismissed, PermissionOutcome, PermissionQuestion, Selected
from punie.ports.permission import PermissionBroker


@define(eq=False)
class RecordedBroker(PermissionBroker):
    """Gives the answers in their order, an option's id or None for no answer; lives as long as the test.

    A question beyond the last answer is dismissed, so that nothing runs which the test did not expect. `questions` are
    all that were asked.
    """

    answers: Iterable[str | None] = ()
    questions: list[PermissionQuestion] = field(factory=list[PermissionQuestion], init=False)
    _left: deque[str | anyio.Event | None] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._left = deque(self.answers)

    @property
    def unused(self) -> int:
        """The number of answers that no question took."""
        return len(self._left)

    def add(self, answer: str | None) -> None:
        """Add one more answer, behind the others."""
        self._left.append(answer)

    def add_silence(self) -> anyio.Event:
        """Leave one question without an answer until its call is given up; the event is set once it is asked."""
        put = anyio.Event()
        self._left.append(put)
        return put

    async def ask(self, question: PermissionQuestion) -> PermissionOutcome:
        self.questions.append(question)
        answer = self._left.popleft() if self._left else None
        await anyio.lowlevel.checkpoint()
        if isinstance(answer, str):
            return Selected(answer)
        if answer is not None:
            answer.set()
            await anyio.sleep_forever()
        return Dismissed("no answer was recorded for it")
