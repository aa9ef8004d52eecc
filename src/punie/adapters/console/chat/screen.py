"""The screen of `punie chat`: printed lines above, and one line to type into that stays at the bottom."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup
from attrs import define, field, frozen
from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, DummyCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import (
    BufferControl,
    CompletionsMenu,
    ConditionalContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    VerticalAlign,
    Window,
)
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from punie.adapters.console.chat.terminal import in_pager, terminal_output

STYLE = Style.from_dict({
    "prompt": "bold", "asks": "bold ansiyellow", "busy": "ansicyan", "status": "ansibrightblack",
    "completion-menu": "noinherit", "completion-menu.completion": "noinherit",
    "completion-menu.completion.current": "noinherit reverse",
    "completion-menu.meta.completion": "noinherit ansibrightblack",
    "completion-menu.meta.completion.current": "noinherit reverse",
    "scrollbar.background": "noinherit", "scrollbar.button": "noinherit reverse",
})  # fmt: skip

LIVE_LINES = 6
"""Lines of an unfinished answer that are shown below what is finished."""

TICK_S = 0.2

SETTLE_S = 0.7
"""An empty line that comes so soon behind a question was meant for the text that was typed before it."""

FRAMES, PLAIN_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"


@frozen
class _Draft:
    """The text that was typed when a question came, and the moment of that."""

    document: Document
    asked_s: float


@define(eq=False)
class Screen:
    """The terminal of one conversation; lives as long as `run`.

    `submit` takes each line that is no answer to a question, and `status` is the text below the line, for so many
    columns. `away` is True while a pager has the terminal.
    """

    submit: Callable[[str], None]
    status: Callable[[int], str]
    keys: KeyBindings = field(factory=KeyBindings)
    completer: Completer = field(factory=DummyCompleter)
    history: History = field(factory=InMemoryHistory)
    unicode: bool = True
    input: Input | None = None
    output: Output = field(factory=terminal_output)
    buffer: Buffer = field(init=False)
    away: bool = field(default=False, init=False)
    _live: str = field(default="", init=False)
    _busy: Callable[[], str] = field(default=str, init=False)
    _held: list[str] = field(factory=list[str], init=False)
    _draft: _Draft | None = field(default=None, init=False)
    _answered: anyio.Event = field(factory=anyio.Event, init=False)
    _answer: str = field(default="", init=False)
    _one: anyio.Lock = field(factory=anyio.Lock, init=False)
    _tasks: TaskGroup = field(init=False)
    _height: int = field(default=0, init=False)
    _frames: itertools.cycle[str] = field(init=False)
    _frame: str = field(default="", init=False)
    _app: Application[None] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._frames = itertools.cycle(FRAMES if self.unicode else PLAIN_FRAMES)
        self.buffer = Buffer(
            completer=self.completer, history=self.history, multiline=True,
            complete_while_typing=Condition(lambda: not self.asks and self._completes()),
        )  # fmt: skip
        self._app = Application(
            layout=self._layout(), style=STYLE, key_bindings=self.keys, erase_when_done=True,
            color_depth=ColorDepth.from_env(),
            min_redraw_interval=0.03, input=self.input, output=self.output, before_render=self._shrink,
        )  # fmt: skip

    @property
    def columns(self) -> int:
        """The width of the terminal."""
        return self.output.get_size().columns

    @property
    def asks(self) -> bool:
        """Whether a question is open."""
        return self._draft is not None

    async def run(self) -> bool:
        """Show the screen until `close`, taking what is typed; False where the terminal is gone."""
        there = True
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._tick)
            try:
                await self._app.run_async(handle_sigint=False, set_exception_handler=False)
            except (EOFError, OSError):
                there = False
            self._tasks.cancel_scope.cancel()
        return there

    def close(self) -> None:
        """End `run`; a second time nothing happens."""
        if self._app.is_running and not (self._app.future and self._app.future.done()):
            self._app.exit()

    def print(self, text: str) -> None:
        """Print a text above the line, which may have colours and ends with a newline.

        The text is written as it is; behind a question, and behind a text that is being read, where there is one.
        """
        if self._one.locked():
            self._held.append(text)
        else:
            self._print(text)

    def read(self, text: str) -> None:
        """Let the person read a long text in a pager, which has the keys; where there is none, print it."""
        self._tasks.start_soon(self._read, text)

    async def _read(self, text: str) -> None:
        async with self._one:
            with set_app(self._app):
                async with in_terminal():
                    self.away = True
                    try:
                        shown = await in_pager(text)
                    finally:
                        self.away = False
            if not shown:
                self._print(text)
            self._print_held()

    def show(self, live: str) -> None:
        """Show the end of this unfinished text above the line; empty shows none."""
        self._live = live
        self._app.invalidate()

    def work(self, busy: Callable[[], str]) -> None:
        """Show what is being done, which `busy` says again and again; empty while nothing is."""
        self._busy = busy
        self._app.invalidate()

    def refresh(self) -> None:
        """Show the present status."""
        self._app.invalidate()

    def complete_again(self) -> None:
        """Offer completions anew, where more of them have become known and one is being typed."""
        if self._completes() and not self.asks:
            self.buffer.start_completion()

    # ------------------------------------------------------------ questions

    @asynccontextmanager
    async def question(self) -> AsyncGenerator[None]:
        """Take lines as answers to a question within the block, one block at a time; other output waits for its end.

        The text that was being typed is put aside until then.
        """
        async with self._one:
            self._draft = _Draft(self.buffer.document, time.monotonic())
            self.buffer.reset()
            try:
                yield
            finally:
                draft, self._draft = self._draft, None
                self.buffer.reset(draft.document)
                self._print_held()

    def say(self, text: str) -> None:
        """Print a part of the question."""
        self._print(text)

    async def answer(self) -> str:
        """The next line, with its newline."""
        self._answered = anyio.Event()
        await self._answered.wait()
        return f"{self._answer}\n"

    # ------------------------------------------------------------ keys

    def enter(self) -> None:
        """Take the line as an answer, or submit it."""
        text, draft = self.buffer.text, self._draft
        if draft is None:
            self.buffer.reset(append_to_history=bool(text.strip()))
            if text.strip():
                self.submit(text)
        elif text or not draft.document.text or time.monotonic() - draft.asked_s > SETTLE_S:
            self.buffer.reset()
            self._answer = text
            self._answered.set()

    def clear(self) -> None:
        """Empty the line; a key that is read together with this one finds the earlier prompts, as `reset` would not."""
        self.buffer.history_forward(sys.maxsize)
        self.buffer.document = Document()

    # ------------------------------------------------------------ layout

    def _print(self, text: str) -> None:
        self._app.renderer.erase()
        self.output.write_raw(text.replace("\n", "\r\n"))
        self.output.flush()
        self._height = 0
        self._app.invalidate()

    def _print_held(self) -> None:
        for text in self._held:
            self._print(text)
        self._held.clear()

    async def _tick(self) -> None:
        while True:
            await anyio.sleep(TICK_S)
            if self._busy():
                self._frame = next(self._frames)
                self._app.invalidate()

    def _shrink(self, app: Application[None]) -> None:
        """Erase what is shown where it gets lower, which the renderer would leave as empty lines."""
        size = self.output.get_size()
        wanted = app.layout.container.preferred_height(size.columns, size.rows).preferred
        if wanted < self._height:
            app.renderer.erase()
        self._height = wanted

    def _layout(self) -> Layout:
        search = SearchToolbar(ignore_case=True)
        typed = Window(
            BufferControl(self.buffer, search_buffer_control=search.control, preview_search=True),
            height=self._typed_height, wrap_lines=True, dont_extend_height=True, get_line_prefix=self._prefix,
        )  # fmt: skip
        parts = [
            self._shown(self._live_text, lambda: bool(self._live)),
            self._shown(lambda: [("class:busy", self._busy_line())], lambda: bool(self._busy()) and not self.asks),
            typed,
            CompletionsMenu(max_height=8, scroll_offset=1),
            search,
            self._shown(lambda: [("class:status", self.status(self.columns))], lambda: True),
        ]
        return Layout(HSplit(parts, align=VerticalAlign.TOP), focused_element=typed)

    def _typed_height(self) -> Dimension:
        return Dimension(min=1, max=max(1, self.output.get_size().rows // 2))

    def _shown(self, text: Callable[[], StyleAndTextTuples], when: Callable[[], bool]) -> ConditionalContainer:
        window = Window(FormattedTextControl(text), dont_extend_height=True)
        return ConditionalContainer(window, Condition(when))

    def _live_text(self) -> StyleAndTextTuples:
        width = max(1, self.columns - 1)
        lines = [line[at : at + width] for line in self._live.split("\n") for at in range(0, len(line) or 1, width)]
        return [("", "\n".join(lines[-LIVE_LINES:]))]

    def _busy_line(self) -> str:
        return f"{self._frame or next(self._frames)} {self._busy()}"[: self.columns - 1]

    def _prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        if self.asks:
            return [("class:asks", "? " if not line and not wrapped else "  ")]
        return [("class:prompt", "> " if not line and not wrapped else "  ")]

    def _completes(self) -> bool:
        before = self.buffer.document.text_before_cursor
        return before.startswith("/") or "@" in before.rpartition(" ")[2]
