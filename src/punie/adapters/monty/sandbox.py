"""Programs in Monty's worker process, one worker a program, driven step by step so that calls are awaited here."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio
import anyio.to_thread
from attrs import define, field

from punie.domain.errors import ToolFailedError
from punie.domain.pipelines.program import CallRaisedError, ProgramEnd, ProgramLimits
from punie.domain.values.json_value import JsonValue, freeze, freeze_object, thaw
from punie.ports.tools import HostCall, ProgramSandbox

if TYPE_CHECKING:
    from pydantic_monty import CollectString, MontyError

    Snapshot = Any  # the library's union of what a program may stop at

FILE = "program.py"
DEPTH_LIMIT = 50
TEXT_LIMIT = 10_000
CLOSE_LIMIT_S = 2.0
BEYOND_LIMIT_S = 5.0
"""A worker that does not end a program in time by itself is killed that much later."""

_Result = TypeVar("_Result")


class MontySandbox(ProgramSandbox):
    """Starts a worker process for each program, in 50 ms; it ends with the program, so that no state is left behind."""

    async def run(self, program: str, call: HostCall, limits: ProgramLimits) -> ProgramEnd:
        """See the port."""
        worker = _Worker(limits)
        try:
            await worker.start()
            return await worker.run(program, call)
        finally:
            with anyio.move_on_after(CLOSE_LIMIT_S, shield=True):
                await anyio.to_thread.run_sync(worker.close, abandon_on_cancel=True)


@define(eq=False)
class _Worker:
    """One worker process with one program; blocking calls of the library are made in threads."""

    limits: ProgramLimits
    _pool: Any = field(default=None, init=False)
    _session: Any = field(default=None, init=False)
    _pid: int | None = field(default=None, init=False)

    async def start(self) -> None:
        try:
            await self._thread(self._open)
        except (OSError, RuntimeError) as error:
            raise ToolFailedError(f"No program can be run here: Monty's worker does not start ({error}).") from error

    def _open(self) -> None:
        from pydantic_monty import Monty

        self._pool = Monty(min_processes=1, max_processes=1, request_timeout=self.limits.time_s + BEYOND_LIMIT_S)
        self._pool.__enter__()
        self._session = self._pool.checkout(
            script_name=FILE,
            limits={
                "max_feed_duration_secs": self.limits.time_s,
                "max_memory": self.limits.memory_bytes,
                "max_recursion_depth": self.limits.depth,
                "max_suspensions": 2 * self.limits.calls,
                "max_total_sleep_secs": 0.0,
            },
        )
        self._session.__enter__()
        self._pid = self._session.worker_pid

    async def run(self, program: str, call: HostCall) -> ProgramEnd:
        from pydantic_monty import CollectString, MontyComplete, MontyError

        printed = CollectString(max_bytes=self.limits.printed_bytes)
        try:
            stop = await self._thread(lambda: self._session.feed_start(program, print_callback=printed))
            while not isinstance(stop, MontyComplete):
                stop = await self._answered(stop, call)
            return ProgramEnd(_json(stop.output), printed.output)
        except MontyError as error:
            return _broken(error, printed)

    async def _answered(self, stop: Snapshot, call: HostCall) -> Snapshot:
        from pydantic_monty import FunctionSnapshot, NameLookupSnapshot

        if isinstance(stop, NameLookupSnapshot):
            return await self._thread(stop.resume)
        if not isinstance(stop, FunctionSnapshot):
            raise ToolFailedError("The program waits for what nobody will give it. Call tools without await.")
        if stop.is_os_function:
            return await self._thread(stop.resume_not_handled)
        answer = await _called(call, str(stop.function_name), stop.args, stop.kwargs)
        return await self._thread(lambda: stop.resume(cast("Any", answer)))

    async def _thread(self, block: Callable[[], _Result]) -> _Result:
        """Run it in a thread. A cancellation kills the worker, which is what ends the thread as well."""
        try:
            return await anyio.to_thread.run_sync(block, abandon_on_cancel=True)
        except anyio.get_cancelled_exc_class():
            self._kill()
            raise

    def _kill(self) -> None:
        if self._pid is not None:
            with contextlib.suppress(OSError):  # it ended by itself meanwhile
                os.kill(self._pid, signal.SIGTERM)

    def close(self) -> None:
        from pydantic_monty import MontyError

        for opened in (self._session, self._pool):
            if opened is not None:
                with contextlib.suppress(MontyError, RuntimeError):  # of a worker that was killed
                    opened.__exit__(None, None, None)


async def _called(call: HostCall, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, object]:
    try:
        json.dumps([args, kwargs], allow_nan=False)
        given = cast("tuple[JsonValue, ...]", freeze(list(args)))
        named = freeze_object(kwargs)
    except (TypeError, ValueError, RecursionError) as error:
        return {"exc_type": "TypeError", "message": f"{name}(): tools take JSON values only: {error}"}
    try:
        return {"return_value": thaw(await call(name, given, named))}
    except CallRaisedError as error:
        return {"exc_type": error.kind, "message": str(error)}


def _broken(error: MontyError, printed: CollectString) -> ProgramEnd:
    from pydantic_monty import MontyRuntimeError, MontySyntaxError

    if not isinstance(error, (MontyRuntimeError, MontySyntaxError)):
        return ProgramEnd(None, printed.output, f"{type(error).__name__}: {error}")
    frames = [frame for frame in error.traceback() if frame.filename.endswith((FILE, ">"))]
    return ProgramEnd(None, printed.output, error.display("type-msg"), frames[-1].line if frames else None)


def _json(value: object, depth: int = 0) -> JsonValue:
    """The value as JSON; the text of a value that has no form there."""
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, float):
        return str(value)
    if depth >= DEPTH_LIMIT:
        return "[nested too deeply to be told]"
    if isinstance(value, Mapping):
        table = cast("Mapping[object, object]", value)
        return freeze({str(key): _json(item, depth + 1) for key, item in table.items()})
    if isinstance(value, (list, tuple, set, frozenset)):
        return tuple(_json(item, depth + 1) for item in cast("list[object]", value))
    return str(value)[:TEXT_LIMIT]
