"""The keys of `punie chat`, beside those of every line editor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attrs import frozen
from prompt_toolkit.filters import has_completions, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

FIRST_DRAWINGS = 3
"""Times that the screen is drawn until what was typed before it was there has been read."""

KEYS = (
    ("Enter", "send the line; in a question, answer it"),
    ("Alt-Enter, Ctrl-J, or a backslash before Enter", "begin another line"),
    ("Tab", "complete a command, a model, a mode or an @file"),
    ("Up, Down, Ctrl-R", "earlier prompts, also of earlier sessions"),
    ("Ctrl-V", "put the picture in the clipboard into the prompt"),
    ("Ctrl-O", "show the whole output of the last call"),
    ("Ctrl-C", "stop the turn; twice leaves"),
    ("Ctrl-D", "leave, on an empty line"),
)
"""The keys that a person is told of, and what each does."""


@frozen
class Acts:
    """The acts behind the keys: take the line, stop the turn or leave, leave, open the last output, paste a picture.

    `pasted` gives the text that is put into the line for a pasted one.
    """

    enter: Callable[[], None]
    interrupt: Callable[[], None]
    leave: Callable[[], None]
    open_last: Callable[[], None]
    paste_picture: Callable[[], None]
    pasted: Callable[[str], str]


def bindings(acts: Acts) -> KeyBindings:
    """The bindings for these acts."""
    keys = KeyBindings()
    keys.add("enter", filter=~is_searching)(partial(_enter, acts))
    keys.add("escape", "enter", filter=~is_searching)(_begin_line)
    keys.add("c-j", filter=~is_searching)(partial(_newline, acts))
    keys.add("escape", filter=has_completions)(_cancel_completion)
    keys.add("c-c", filter=~is_searching)(partial(_do, acts.interrupt))
    keys.add("c-d", filter=~is_searching)(partial(_delete_or_leave, acts))
    keys.add("c-o")(partial(_do, acts.open_last))
    keys.add("c-v")(partial(_do, acts.paste_picture))
    keys.add("c-z")(_suspend)
    keys.add(Keys.BracketedPaste)(partial(_paste, acts))
    return keys


def _enter(acts: Acts, event: KeyPressEvent) -> None:
    """Take the chosen completion, or begin another line behind a backslash, or take the line."""
    line = event.current_buffer
    if line.complete_state is not None and line.complete_state.current_completion is not None:
        line.complete_state = None
    elif line.document.char_before_cursor == "\\" and line.document.is_cursor_at_the_end:
        line.delete_before_cursor()
        line.newline(copy_margin=False)
    else:
        acts.enter()


def _do(act: Callable[[], None], _event: KeyPressEvent) -> None:
    act()


def _cancel_completion(event: KeyPressEvent) -> None:
    event.current_buffer.cancel_completion()


def _suspend(event: KeyPressEvent) -> None:
    event.app.suspend_to_background()


def _paste(acts: Acts, event: KeyPressEvent) -> None:
    event.current_buffer.insert_text(acts.pasted(event.data))


def _newline(acts: Acts, event: KeyPressEvent) -> None:
    """Begin another line; before the screen was drawn twice it is an Enter, which the terminal itself had taken."""
    if event.app.render_counter < FIRST_DRAWINGS:
        acts.enter()
    else:
        _begin_line(event)


def _begin_line(event: KeyPressEvent) -> None:
    event.current_buffer.newline(copy_margin=False)


def _delete_or_leave(acts: Acts, event: KeyPressEvent) -> None:
    if event.current_buffer.text:
        event.current_buffer.delete()
    else:
        acts.leave()
