"""/model: what a client's picker does, for those who type."""

from __future__ import annotations

from collections.abc import Iterator

from punie.application.turns.command_outcome import Answered, Outcome
from punie.application.turns.commands.command import Invocation, SlashCommand
from punie.application.turns.model_switch import explore, switch_model
from punie.domain.errors import EngineError, SessionStoreError, UnknownModelError
from punie.domain.model.choice import ModelMenu
from punie.domain.session.commands import CommandInfo
from punie.domain.values.display import one_line

NAME_CHARS = 200


class ModelCommand(SlashCommand):
    """`/model [NAME]`: lists, or switches."""

    @property
    def info(self) -> CommandInfo:
        return CommandInfo("model", "Show the model, or go on with another one", "name of a model")

    async def run(self, invocation: Invocation) -> Outcome:
        session, wanted = invocation.session, invocation.arguments.strip()
        if not wanted:
            return Answered("\n".join(_listed(session.menu)))
        try:
            await switch_model(session, _meant(wanted, session.menu), in_turn=True)
        except (UnknownModelError, EngineError, SessionStoreError) as error:
            return Answered(f"{error}\n\nThe model is still {_quoted(session.model)}.")
        session.tasks.start_soon(explore, session)
        return Answered(f"{_quoted(session.model)} answers from here on. It knows what was said so far.")


def _meant(wanted: str, menu: ModelMenu) -> str:
    """The name in full; one may leave out the provider where that is clear."""
    if wanted in menu.models:
        return wanted
    fit = [name for name in menu.models if name.partition(":")[2] == wanted]
    return fit[0] if len(fit) == 1 else wanted


def _listed(menu: ModelMenu) -> Iterator[str]:
    effort = "" if menu.choice.effort is None else f" (thinking: {menu.choice.effort.value})"
    yield f"The model is {_quoted(menu.choice.model)}{effort}. `/model` with a name goes on with that one:"
    yield ""
    for name in menu.models:
        yield f"- {_quoted(name)}"


def _quoted(name: str) -> str:
    return f"`{one_line(name, NAME_CHARS).replace('`', chr(39))}`"
