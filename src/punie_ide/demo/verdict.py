"""What the demo claims, checked: tools that were discovered, a question that was asked, a file that changed on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from punie_ide.demo.screen import Screen
from punie_ide.events import IdeEvent, PermissionAnswered, PermissionAsked, ToolUsed
from punie_ide.permission import Question


@frozen
class Verdict:
    """The three facts; `changed` compares what was on the disk before the first prompt and after the last."""

    tier: str
    tools: tuple[str, ...]
    asked: tuple[tuple[str, str], ...]
    changed: tuple[str, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """What should have happened and did not."""
        facts = {
            "no discovered tool was used": bool(self.tools) and self.tier == "catalog",
            "nobody was asked for leave": bool(self.asked),
            "no file changed on the disk": bool(self.changed),
        }
        return tuple(text for text, happened in facts.items() if not happened)


def judge(events: Sequence[IdeEvent], tier: str, before: Mapping[str, str], after: Mapping[str, str]) -> Verdict:
    """The verdict on one conversation."""
    used = [event.name for event in events if isinstance(event, ToolUsed) and not event.is_error]
    answers = {event.call_id: event.option_id for event in events if isinstance(event, PermissionAnswered)}
    asked = [event.question for event in events if isinstance(event, PermissionAsked)]
    paths = sorted({*before, *after})
    return Verdict(
        tier,
        tuple(dict.fromkeys(used)),
        tuple((question.title, _answer(question, answers.get(question.call_id))) for question in asked),
        tuple(path for path in paths if before.get(path) != after.get(path)),
    )


def _answer(question: Question, option_id: str | None) -> str:
    return next((option.name for option in question.options if option.id == option_id), "no answer")


def show_verdict(screen: Screen, verdict: Verdict) -> None:
    """The last lines of the demo."""
    screen.line()
    screen.line("What happened", "bold")
    screen.line(f"discovered tools used (tier {verdict.tier}): {', '.join(verdict.tools) or 'none'}", indent="  ")
    screen.line(f"questions asked, and the answers ({len(verdict.asked)}):", indent="  ")
    for title, answer in verdict.asked:
        screen.cut(f"{answer}: {title}", indent="    ")
    screen.line(f"changed on the disk: {', '.join(verdict.changed) or 'nothing'}", indent="  ")
    if verdict.missing:
        screen.line(f"Not everything worked: {'; '.join(verdict.missing)}.", "red")
