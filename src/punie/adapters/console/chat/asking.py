"""Questions of permission on the screen of `punie chat`."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from punie.adapters.console.chat.painting import Paint
from punie.adapters.console.chat.screen import Screen
from punie.adapters.console.questions import diff_lines, shown_question, understood
from punie.domain.permission.flow import PermissionOutcome, PermissionQuestion
from punie.mechanics.questions import CHOICES_HINT, Asking, T, answer_later, asking
from punie.ports.permission import PermissionBroker


@frozen
class ScreenBroker(PermissionBroker):
    """Asks the person at the screen, one question at a time; Enter rejects, and what means nothing is asked again.

    `changes_shown` is told of a call whose changes the question showed. Paths below `cwd` are shown relative.
    `apart` is called before a question, for an empty line above it.
    """

    screen: Screen
    paint: Paint
    changes_shown: Callable[[str], None]
    cwd: str = ""
    apart: Callable[[], object] = bool

    async def ask(self, question: PermissionQuestion) -> PermissionOutcome:
        prompt, answers = understood(question)
        whole, prompted = self._painted(question), self.paint.lines(prompt.split("  "), "yellow", indent=2)
        if question.diffs:
            self.changes_shown(question.call_id)

        def say(text: str) -> None:
            (self.screen.say if prompted in text else self.say)(text)  # the question is painted already

        return await self.hear(asking(say, whole, prompted, answers, answers[""], f"{CHOICES_HINT} Enter rejects."))

    def say(self, text: str) -> None:
        """Print a part of a form."""
        if text:
            self.screen.say(self.paint.lines(text.rstrip("\n").split("\n"), "yellow"))

    async def hear(self, question: Asking[T]) -> T:
        """The answer to a question, whatever it is about."""
        self.apart()
        async with self.screen.question():
            return await answer_later(question, self._answer)

    async def _answer(self) -> str:
        line = await self.screen.answer()
        self.screen.say(self.paint.line(f"  > {line.strip()}", "dim"))
        return line

    def _painted(self, question: PermissionQuestion) -> str:
        changes = [line for diff in question.diffs for line in diff_lines(diff, self.cwd)]
        _, title, *more = list(shown_question(question, self.cwd))[: None if not changes else -len(changes)]
        parts = [self.paint.line(title, "bold yellow")]
        if more:
            parts.append(self.paint.lines([line.removeprefix("  ") for line in more], indent=2))
        if changes:
            parts.append(self.paint.changes(changes))
        return "".join(parts)
