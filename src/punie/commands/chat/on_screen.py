"""`punie chat` on a terminal that a screen can be drawn on."""

from __future__ import annotations

import signal
import sys
from functools import partial

import anyio
from anyio.abc import TaskGroup

from punie import __version__
from punie.application.agent import PunieAgent
from punie.commands.chat.conversation import Conversation
from punie.commands.chat.session import ChatSession
from punie.commands.running import CommandError, watch_signals
from punie.domain.errors import PunieError
from punie.domain.model.provider import DIRECT
from punie.domain.session.session import OpenedSession
from punie.domain.values.display import display_safe

HUNG_UP = 129
ID_CHARS = 13
"""Characters of a session's id in the status line."""


async def talk(chat: ChatSession) -> int:
    """Talk on the screen until the person leaves; returns the exit code. Raises `PunieError` and `CommandError`."""
    chat.start_log(to_file=sys.stderr.isatty())
    failed: list[PunieError | CommandError] = []
    code = HUNG_UP
    async with chat.agent() as agent:
        async with anyio.create_task_group() as tasks:
            code = await _talk(chat, agent, tasks, failed)
            tasks.cancel_scope.cancel()
        if failed:
            raise failed[0]
    return code


async def _talk(chat: ChatSession, agent: PunieAgent, tasks: TaskGroup, failed: list[PunieError | CommandError]) -> int:
    file, unicode = chat.history_file, (sys.stdout.encoding or "").lower().startswith("utf")
    talk = Conversation(agent, tasks, chat.log, str(chat.cwd), chat.environ, file, unicode)
    hang_up: signal.Signals | None = getattr(signal, "SIGHUP", None)  # Windows has none
    await tasks.start(watch_signals, talk.signalled)
    if hang_up is not None:
        tasks.start_soon(_watch, hang_up, partial(talk.leave, HUNG_UP))
    talk.screen.work(lambda: "opening the session")
    tasks.start_soon(_open, talk, chat, failed)  # the line is there at once, and what is typed waits
    if not await talk.screen.run():
        talk.exit_code = HUNG_UP
    live = agent.live(talk.session_id)
    if talk.turns and talk.exit_code != HUNG_UP and live is not None and live.recorder.record.is_kept:
        sys.stdout.write(f"To go on: punie chat --session {talk.session_id}\n")
    return talk.exit_code


async def _open(talk: Conversation, chat: ChatSession, failed: list[PunieError | CommandError]) -> None:
    """Open the session; a failure ends the screen."""
    try:
        opened = await chat.opened(talk.agent, talk.peer())
    except (PunieError, CommandError) as error:
        failed.append(error)
        talk.leave()
        return
    _begin(talk, chat, opened)
    talk.agent.greet(opened.id)
    talk.agent.explore_models(opened.id)


def _begin(talk: Conversation, chat: ChatSession, opened: OpenedSession) -> None:
    """Say where and with what the conversation goes on."""
    facts, options = talk.facts, opened.options
    facts.session, facts.mode, facts.model = opened.id[:ID_CHARS], options.mode.value, options.models.choice.model
    head = f"Punie {__version__}" if chat.session is None else "Going on"
    talk.sink.say(talk.paint.line(head, "bold", f"  {display_safe(str(chat.cwd))}"))
    if facts.model == DIRECT:
        talk.sink.say(talk.paint.line("Without a model: what you type is a command. `punie setup model` chooses one."))
    talk.sink.say(talk.paint.line("/help lists commands and keys. Ctrl-D leaves.", "dim"))
    talk.screen.work(talk.sink.busy)
    talk.began(opened.id)


async def _watch(number: signal.Signals, act: partial[None]) -> None:
    """Leave where the terminal is closed, so that programs and sessions are ended and nothing is lost."""
    with anyio.open_signal_receiver(number) as signals:
        async for _ in signals:
            act()
