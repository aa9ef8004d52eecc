"""The person's side of a conversation: lines become prompts or words of the front end, keys stop turns and leave."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from punie.adapters.console.chat.asking import ScreenBroker
from punie.adapters.console.chat.events import ChatSink, Facts
from punie.adapters.console.chat.keys import KEYS, Acts, bindings
from punie.adapters.console.chat.painting import Paint
from punie.adapters.console.chat.pasting import ClipboardError, Pasted, clipboard_picture
from punie.adapters.console.chat.screen import Screen
from punie.adapters.console.chat.typing_aids import WordCompleter, history_in
from punie.adapters.console.forms import TypedForms
from punie.application.agent import PunieAgent
from punie.application.turns.live_session import LiveSession
from punie.commands.chat.session import INTERRUPTED, leaves
from punie.commands.mentions import as_mention, mentioned, project_files
from punie.commands.running import Exit
from punie.domain.errors import PunieError
from punie.domain.session.prompt_files import CommandInfo, typed_in
from punie.domain.tools.catalog import ClientCapabilities
from punie.domain.values.content import Prompt
from punie.domain.values.file_kind import PICTURE_LIMIT_BYTES
from punie.ports.agent import RunningTurn
from punie.ports.people import Peer

FRESH_S = 20.0
"""Files are listed again where the list is older."""

OFFERED = 40


@define(eq=False)
class MentionedFiles:
    """The names of the project's files, listed when they are first asked for; lives as long as the conversation.

    `changed` is called when there are other names than before.
    """

    live: Callable[[], LiveSession | None]
    tasks: TaskGroup
    changed: Callable[[], None]
    _names: tuple[str, ...] = field(default=(), init=False)
    _looked_s: float = field(default=float("-inf"), init=False)

    def like(self, typed: str) -> list[str]:
        """The mentions of files whose name begins with the text, then of those that have it anywhere."""
        now_s = time.monotonic()
        if now_s - self._looked_s > FRESH_S:
            self._looked_s = now_s
            self.tasks.start_soon(self._look)
        wanted = typed.lower()
        begin = [name for name in self._names if name.lower().startswith(wanted)]
        others = (name for name in self._names if wanted in name.lower() and not name.lower().startswith(wanted))
        return [as_mention(name) for name in islice((*begin, *others), OFFERED)]

    async def _look(self) -> None:
        live = self.live()
        names = () if live is None else await project_files(live)
        if names != self._names:
            self._names = names
            self.changed()


AGAIN_S = 2.0
"""A second Ctrl-C within this time leaves."""

OWN_WORDS = (
    CommandInfo("open", "Show the whole output of a call, by default of the last", "number of the call"),
    CommandInfo("exit", "Leave"),
)
"""The words that the terminal itself knows, beside the commands of the session."""

NO_PICTURE = "What is in the clipboard is no picture in a form that models take, or has more than"

BROKE = "Something broke inside Punie; its log says more."


@define(eq=False)
class Conversation:
    """One session at a terminal, with its screen; lives as long as the screen.

    `session_id` is set once the session is open, `exit_code` when the person leaves, and `turns` counts the prompts.
    """

    agent: PunieAgent
    tasks: TaskGroup
    log: logging.Logger
    cwd: str
    environ: Mapping[str, str]
    history: Path | None
    unicode: bool
    session_id: str = field(default="", init=False)
    exit_code: int = field(default=Exit.DONE, init=False)
    turns: int = field(default=0, init=False)
    facts: Facts = field(factory=Facts, init=False)
    screen: Screen = field(init=False)
    paint: Paint = field(init=False)
    sink: ChatSink = field(init=False)
    _pasted: Pasted = field(factory=Pasted, init=False)
    _stopped: bool = field(default=False, init=False)
    _one: anyio.Lock = field(factory=anyio.Lock, init=False)
    _open_now: anyio.Event = field(factory=anyio.Event, init=False)
    _reading: anyio.CancelScope = field(factory=anyio.CancelScope, init=False)
    _pressed_s: float = field(default=float("-inf"), init=False)

    def __attrs_post_init__(self) -> None:
        acts = Acts(self._enter, self.interrupt, self.leave, self.open_last, self._paste_picture, self._pasted.word)
        files = MentionedFiles(self._live, self.tasks, self._complete_again)
        completer = WordCompleter(self.words, self.values, files.like)
        self.screen = Screen(
            self.submit, self.facts.line, bindings(acts), completer, history_in(self.history), self.unicode
        )
        self.paint = Paint(lambda: self.screen.columns, self.unicode)
        self.sink = ChatSink(self.screen, self.paint, self.facts, self.cwd)

    def peer(self) -> Peer:
        """The terminal as the session's client."""
        broker = ScreenBroker(self.screen, self.paint, self.sink.asked.add, self.cwd, self.sink.apart)
        forms = TypedForms(broker.say, broker.hear)
        return Peer(ClientCapabilities(names_options=True, notices=True), broker, self.sink, elicitor=forms)

    def _enter(self) -> None:
        self.screen.enter()

    # ------------------------------------------------------------ lines

    def _paste_picture(self) -> None:
        if not self.screen.asks:
            self.tasks.start_soon(self._pasted_picture)

    async def _pasted_picture(self) -> None:
        try:
            data = await clipboard_picture(self.environ)
            word = self._pasted.picture(data)
        except ClipboardError as error:
            self.sink.say(self.paint.line(str(error), "yellow"))
            return
        if word is None:
            self.sink.say(self.paint.line(f"{NO_PICTURE} {PICTURE_LIMIT_BYTES // 1_000_000} MB.", "yellow"))
        elif not self.screen.asks:
            self.screen.buffer.insert_text(f"{word} ")

    def submit(self, line: str) -> None:
        """Take one line of the person."""
        line = _encodable(line)
        text = _encodable(self._pasted.whole(line))
        typed = typed_in(Prompt.of_text(text))
        self.sink.say(self.paint.echo(line), apart=True)
        if leaves(text):
            self.leave()
        elif typed is not None and typed.name == "open":
            self._open(typed.arguments)
        else:
            if typed is not None and typed.name == "help":
                self._help()
            self.tasks.start_soon(self._prompt, line, text)

    def _open(self, arguments: str) -> None:
        number = int(arguments) if arguments.isascii() and arguments.isdigit() and len(arguments) < 9 else None
        if (arguments and number is None) or not self.sink.open(number):
            self.sink.say(self.paint.line("There is no such call here. /open with the number behind a call shows it."))

    def open_last(self) -> None:
        """Show the whole output of the last call."""
        self._open("")

    def _help(self) -> None:
        words = [f"/{word.name}{f' [{word.hint}]' if word.hint else ''}: {word.description}" for word in OWN_WORDS]
        self.sink.say(
            self.paint.lines(["At this terminal:", *(f"{key}: {does}" for key, does in KEYS), *words], indent=2)
        )

    def began(self, session_id: str) -> None:
        """The session is open: prompts that were typed before are sent."""
        self.session_id = session_id
        self._open_now.set()

    def _complete_again(self) -> None:
        self.screen.complete_again()

    def _live(self) -> LiveSession | None:
        return self.agent.live(self.session_id)

    async def _prompt(self, typed: str, whole: str) -> None:
        """Send a prompt with the files that it mentions, behind those that were typed before it."""
        async with self._one:
            await self._open_now.wait()
            turn: RunningTurn | None = None
            busy = False
            with anyio.CancelScope() as self._reading:
                try:
                    prompt = await self._with_files(typed, whole)
                    busy = self._busy
                    turn = self.agent.begin_turn(self.session_id, prompt)
                except PunieError as error:
                    self._failed(error)
                    return
            if turn is None:
                self.sink.say(self.paint.line("The prompt was not sent.", "yellow"))
                return
            self.turns += 1
        await self._run(turn, first=not busy)

    async def _with_files(self, typed: str, whole: str) -> Prompt:
        live = self._live()
        pictures = self._pasted.pictures(typed)
        if live is None or not (pictures or "@" in typed):
            return Prompt.of_text(whole)
        found = await mentioned(live, typed, whole, pictures)
        if found.notes:
            self.sink.say(self.paint.lines(found.notes, "dim", indent=2))
        return found.prompt

    @property
    def _busy(self) -> bool:
        """Whether a turn runs; prompts may wait where none does."""
        return self.agent.busy(self.session_id)

    async def _run(self, turn: RunningTurn, *, first: bool) -> None:
        if first:
            self._begin()
        try:
            await turn.run()
        except PunieError as error:
            self._failed(error)
        except Exception:
            self.log.exception("turn %s failed", turn.id)
            self.sink.say(self.paint.line(BROKE, "red"))
        if self._busy:  # the next one has begun
            self._begin()

    def _begin(self) -> None:
        self._stopped = False
        self.sink.begin()

    def _failed(self, error: PunieError) -> None:
        self.sink.say(self.paint.line(str(error), "red"))

    # ------------------------------------------------------------ keys and signals

    def interrupt(self) -> None:
        """Ctrl-C: stop the turn, or clear the line, or say that a second one leaves; the second one leaves."""
        if self.screen.away:
            return
        now_s, before_s = time.monotonic(), self._pressed_s
        self._pressed_s = now_s
        if self._one.locked() and self._open_now.is_set():
            self._reading.cancel()
        elif self._busy and not self._stopped:
            self._stopped = True
            self.sink.stopping()
            self.agent.cancel(self.session_id)
        elif self.screen.buffer.text:
            self._pressed_s = before_s
            self.screen.clear()
        elif self._busy or now_s - before_s < AGAIN_S:
            self.leave(INTERRUPTED)
        else:
            self.sink.say(self.paint.line("Ctrl-C again leaves, and so does Ctrl-D.", "dim"))

    def leave(self, exit_code: int = Exit.DONE) -> None:
        """End the conversation with that exit code."""
        self.exit_code = exit_code
        self.screen.close()

    def signalled(self, exit_code: int) -> None:
        """A signal of that exit code: one from outside that interrupts is Ctrl-C, any other leaves."""
        if exit_code == INTERRUPTED:
            self.interrupt()
        else:
            self.leave(exit_code)

    # ------------------------------------------------------------ completion

    def words(self) -> Iterable[CommandInfo]:
        """All commands that may be typed."""
        known = {word.name for word in OWN_WORDS}
        return (*(word for word in self.sink.commands if word.name not in known), *OWN_WORDS)

    def values(self, command: str) -> Iterable[str]:
        """The values that may follow a command."""
        if command not in {"mode", "model"} or not self._open_now.is_set():
            return ()
        options = self.agent.options(self.session_id)
        return options.models.models if command == "model" else [mode.value for mode in options.modes]


def _encodable(line: str) -> str:
    """The line without the halves of characters that a terminal in another encoding makes."""
    return line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
