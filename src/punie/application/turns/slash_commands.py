"""Slash commands: the interface of those that Punie runs itself, and all commands of one session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from attrs import define, field, frozen

from punie.application.turns.live_session import Commands, ForTheModel, LiveSession, Outcome
from punie.domain.model.provider import DIRECT
from punie.domain.session.events import CommandsChanged
from punie.domain.session.prompt_files import CommandInfo, PromptFile, TypedCommand, typed_in
from punie.domain.values.content import Prompt
from punie.ports.engine import EventSink
from punie.ports.workspace import PromptFiles


@frozen
class Invocation:
    """One use of a command, within an open turn; lives until the command is done.

    `arguments` is the text after the command's name. Events given to `events` are logged and sent to the client.
    """

    arguments: str
    prompt: Prompt
    session: LiveSession
    events: EventSink
    turn_id: str


@frozen
class SlashCommand:
    """A command that Punie runs itself, the same object for every session; lives as long as the process.

    `info` is its name and its description for a person. `run` carries the command out, until the turn is cancelled, and
    raises what a turn may raise. A command that `needs_model` is not offered while no model is in use.
    """

    info: CommandInfo
    run: Callable[[Invocation], Awaitable[Outcome]]
    needs_model: bool = False

    def offered(self, session: LiveSession) -> bool:
        """Whether the session offers the command."""
        return not self.needs_model or session.model != DIRECT


@define
class SessionCommands(Commands):
    """The commands of the engine, of Punie and of the project's prompt files; lives as long as the session.

    Of commands with the same name the engine's counts, then Punie's, then the project's, which need a model. A prompt
    with any other name goes to the engine as text.
    """

    own: tuple[SlashCommand, ...] = ()
    files: PromptFiles | None = None
    _prompts: tuple[PromptFile, ...] = field(default=(), init=False)
    _told: tuple[CommandInfo, ...] | None = field(default=None, init=False)

    async def look(self, session: LiveSession) -> None:
        if self.files is not None and session.model != DIRECT:
            self._prompts = await self.files.read()

    async def announce(self, session: LiveSession) -> None:
        self._told = self._offered(session)
        await session.recorder.emit(CommandsChanged(self._told))

    async def refresh(self, session: LiveSession) -> None:
        await self.look(session)
        now = self._offered(session)
        if self._told is not None and self._told != now:
            self._told = now
            await session.recorder.emit(CommandsChanged(now))

    async def outcome(self, session: LiveSession, prompt: Prompt, events: EventSink, turn_id: str) -> Outcome:
        typed = typed_in(prompt)
        if typed is None or typed.name in {command.name for command in session.engine.commands}:
            return ForTheModel(prompt)
        mine = next((command for command in self._mine(session) if command.info.name == typed.name), None)
        if mine is not None:
            return await mine.run(Invocation(typed.arguments, prompt, session, events, turn_id))
        return await self._of_the_project(session, typed, prompt)

    async def _of_the_project(self, session: LiveSession, typed: TypedCommand, prompt: Prompt) -> Outcome:
        await self.refresh(session)  # a file may be new since the client was told of any
        file = next((one for one in self._usable(session) if one.info.name == typed.name), None)
        return ForTheModel(prompt if file is None else file.filled(typed, prompt))

    def _mine(self, session: LiveSession) -> Iterator[SlashCommand]:
        return (command for command in self.own if command.offered(session))

    def _usable(self, session: LiveSession) -> tuple[PromptFile, ...]:
        return () if session.model == DIRECT else self._prompts

    def _offered(self, session: LiveSession) -> tuple[CommandInfo, ...]:
        everyones = (
            *session.engine.commands,
            *(command.info for command in self._mine(session)),
            *(file.info for file in self._usable(session)),
        )
        by_name: dict[str, CommandInfo] = {}
        for info in everyones:
            by_name.setdefault(info.name, info)
        return tuple(by_name.values())
