"""One model file's server: started when it is needed, shared by the sessions of the process, ended with the last."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import os
import re
import secrets
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import IO, Final

import anyio
import anyio.to_thread
from attrs import define, field, frozen

from punie.api import EngineError, EngineErrorKind, install_line, one_line
from punie_gguf.gguf import ModelFile, read_model_file
from punie_gguf.memory import free_bytes, in_words

START_LIMIT_S: Final = 300.0
"""A large model comes from a slow disk in minutes."""

TELL_AFTER_S: Final = 0.5
END_LIMIT_S: Final = 1.0
WORDS_LIMIT_S: Final = 10.0
LAST_LINES: Final = 4
FIRST_ERRORS: Final = 2
LINE_CHARS: Final = 300

_STAMP: Final = re.compile(r"^[\d.]+ (?P<level>[A-Z]) +")
"""Before each line of llama.cpp: when, and how bad."""

_LOG: Final = logging.getLogger("punie.llama_cpp")
_SECRET_ENDINGS: Final = ("KEY", "KEYS", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS")

Tell = Callable[[str], Awaitable[None]]


@frozen
class Serving:
    """The address of a running server, its key, and the length of a conversation that it takes."""

    base_url: str
    key: str = field(repr=False)
    context_tokens: int


@define(eq=False)
class ModelServer:
    """The server of the model file at `path`; lives as long as the process, its child from `ready` to `stop`."""

    path: str
    serving: Serving | None = field(default=None, init=False)
    _child: _Child | None = field(default=None, init=False)
    _starting: anyio.Lock = field(factory=anyio.Lock, init=False)

    def check(self) -> ModelFile:
        """Check quickly that the server can start. Raises `EngineError`: the extra is missing, or the file is none."""
        if importlib.util.find_spec("xllamacpp") is None:
            raise EngineError(
                EngineErrorKind.CONFIGURATION.value,
                "A model from a GGUF file needs the package xllamacpp, which is not installed.",
                f"Install it ({install_line('local')}), or choose another model.",
            )
        return read_model_file(self.path)

    async def ready(self, tell: Tell) -> Serving:
        """The running server; starts the child where there is none. `tell` gets a line where the loading takes long.

        A child that is cancelled over goes on loading, for the next prompt. Raises `EngineError`.
        """
        async with self._starting:
            if self._child is None or self._child.over:
                await self.stop()
                await self._start(tell)
            child = self._child
        assert child is not None  # noqa: S101 - it was just started
        if not await _waited(child.answered, TELL_AFTER_S):
            await tell(f"Loading the model {child.file.name} ({in_words(child.file.size_bytes)}) ...\n")
            if not await _waited(child.answered, START_LIMIT_S):
                await self.stop()
                raise self._failed(child, EngineErrorKind.TIMEOUT, f"was not loaded within {START_LIMIT_S:g} s")
        if child.address is None:
            await _waited(child.gone, WORDS_LIMIT_S)  # it ends by itself, once its reasons were written
            await self.stop()
            raise self._failed(child, EngineErrorKind.CONFIGURATION, child.why_not)
        self.serving = Serving(f"{child.address}/v1", child.key, child.context_tokens)
        return self.serving

    async def ended(self, error: EngineError) -> EngineError | None:
        """The error to raise instead of that one where the child ended by itself; None where it runs.

        A connection breaks a moment before its process is known to be gone.
        """
        child = self._child
        broke_off = error.kind == EngineErrorKind.CONNECTION.value
        if child is None or not (child.over or broke_off) or not await _waited(child.gone, END_LIMIT_S):
            return None
        return self._failed(child, EngineErrorKind.CONNECTION, f"is gone: its process {child.how_it_ended}")

    async def stop(self) -> None:
        """End the child; the next `ready` starts another. Bounded; idempotent."""
        child, self._child, self.serving = self._child, None, None
        if child is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(child.end)

    async def _start(self, tell: Tell) -> None:
        file = await anyio.to_thread.run_sync(self.check)
        free = free_bytes()
        context_tokens = file.context_within(free)
        if free is not None and not file.fits(free, context_tokens):
            said = (
                f"The model {file.name} has {in_words(file.size_bytes)}, and {in_words(free)} of memory are free: "
                "it may be very slow, or be ended by the system."
            )
            _LOG.warning("%s", said)
            await tell(f"{said}\n")
        try:
            # In the thread of the event loop: Linux ends the child with the thread that started it.
            self._child = _Child(file, context_tokens)
        except OSError as error:
            raise EngineError(
                EngineErrorKind.INTERNAL.value,
                f"No process for the model {file.name} can be started ({error.strerror or error}).",
                "End other programs, and send the prompt again.",
            ) from error

    def _failed(self, child: _Child, kind: EngineErrorKind, what: str) -> EngineError:
        return EngineError(
            kind.value,
            f"The model {child.file.name} {what}.{child.last_words}",
            "The file may be damaged, or of a kind that this llama.cpp does not know: choose another model."
            if kind is EngineErrorKind.CONFIGURATION
            else "Send the prompt again to load it anew; if it stays, choose a smaller model, or free some memory.",
        )


@define(eq=False)
class _Child:
    """The process and its output. Two threads read its pipes, as long as these are open."""

    file: ModelFile
    context_tokens: int
    key: str = field(factory=lambda: secrets.token_urlsafe(24), init=False, repr=False)
    answered: threading.Event = field(factory=threading.Event, init=False)
    gone: threading.Event = field(factory=threading.Event, init=False)
    address: str | None = field(default=None, init=False)
    refusal: str = field(default="", init=False)
    _last: deque[str] = field(factory=lambda: deque[str](maxlen=LAST_LINES), init=False)
    _errors: list[str] = field(factory=list[str], init=False)
    _popen: subprocess.Popen[bytes] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-P", "-m", "punie_gguf.child"],
            env={name: value for name, value in os.environ.items() if _passes(name)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        order = {"model": self.file.path, "context_tokens": self.context_tokens, "key": self.key, "parent": os.getpid()}
        into, out, err = self._popen.stdin, self._popen.stdout, self._popen.stderr
        assert into is not None  # noqa: S101 - it was started with pipes
        assert out is not None  # noqa: S101 - as above
        assert err is not None  # noqa: S101 - as above
        said = threading.Thread(target=self._log, args=(err,), daemon=True)
        said.start()
        threading.Thread(target=self._listen, args=(out, said), daemon=True).start()
        with contextlib.suppress(OSError):  # it ended already, and its output says so
            into.write(json.dumps(order).encode() + b"\n")
            into.flush()

    @property
    def pid(self) -> int:
        """The id of the server's process."""
        return self._popen.pid

    @property
    def over(self) -> bool:
        """Whether it ended."""
        return self._popen.poll() is not None

    @property
    def how_it_ended(self) -> str:
        """For people."""
        code = self._popen.returncode
        return f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"

    @property
    def why_not(self) -> str:
        """Once it is over: why there is no server."""
        return f"cannot be loaded: {self.refusal.rstrip('.') or f'its process {self.how_it_ended}'}"

    @property
    def last_words(self) -> str:
        """The last lines of its output, or its first errors where it did not start; empty where there are none."""
        if self.address is None and self._errors:
            return f" It said: {' / '.join(self._errors)}."
        said = list(self._last)
        return f" It said last: {' / '.join(said)}." if said else ""

    def end(self) -> None:
        """Ask it to end, and make it where it does not; blocks for the moment that takes."""
        if self._popen.stdin is not None:
            with contextlib.suppress(OSError):  # it is gone
                self._popen.stdin.close()
        try:
            self._popen.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        self.gone.wait(END_LIMIT_S)

    def _listen(self, out: IO[bytes], said: threading.Thread) -> None:
        with out:
            self._take(out.readline())
            self.answered.set()
            while out.read(4096):
                pass
        self._popen.wait()
        said.join()
        self.gone.set()

    def _take(self, line: bytes) -> None:
        try:
            answer = json.loads(line)
            self.address, self.refusal = answer.get("address"), str(answer.get("error", self.refusal))
        except (ValueError, AttributeError):
            return  # it ended without a word

    def _log(self, err: IO[bytes]) -> None:
        with err:
            for line in err:
                text = one_line(line.decode("utf-8", "replace").strip(), LINE_CHARS)
                if text:
                    _LOG.debug("%s: %s", self.file.name, text)
                    stamp, said = _STAMP.match(text), _STAMP.sub("", text)
                    self._last.append(said)
                    if stamp is not None and stamp["level"] == "E" and len(self._errors) < FIRST_ERRORS:
                        self._errors.append(said)


def _passes(name: str) -> bool:
    """Whether the child gets that variable as well: no key is among them."""
    return not name.upper().endswith(_SECRET_ENDINGS) and not name.startswith("PUNIE_")


async def _waited(event: threading.Event, limit_s: float) -> bool:
    """Whether it happened within that time."""
    if event.is_set():
        return True
    return await anyio.to_thread.run_sync(event.wait, limit_s, abandon_on_cancel=True)
