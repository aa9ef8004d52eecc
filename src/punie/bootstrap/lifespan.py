"""How long things live: process > connection > session > turn, each exactly one `async with` (DESIGN.md section 5)."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, cast

import anyio
from attrs import define, field

from punie.application.live_session import LiveSession
from punie.bootstrap.engines import Engines
from punie.bootstrap.plugins import PlugIns, scan
from punie.bootstrap.settings import Settings, load_settings
from punie.bootstrap.warm_up import WarmUp
from punie.domain.errors import PunieError
from punie.domain.json_value import EMPTY_OBJECT
from punie.domain.session import SessionSpec
from punie.ports.peer import Peer

if TYPE_CHECKING:
    from punie.adapters.storage.sqlite import SqliteUsageLedger
    from punie.bootstrap.container import ProcessContainer

CLOSE_LIMIT_S = 1.0
"""How long shared connections may take to close when the process ends."""


@define
class Process:
    """The process's own lifetime: flags, environment, engines; the container and the usage ledger once built.

    `plug_ins` stand in for the installed ones where given.
    """

    environ: Mapping[str, str]
    flags: Mapping[str, str | None]
    log: logging.Logger
    plug_ins: PlugIns | None = None
    engines: Engines = field(factory=Engines)
    warm_up: WarmUp = field(init=False)
    _usage: SqliteUsageLedger | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        jobs = {"container": self._build_container, "plug-ins": self._scan_plug_ins, "engine": self._load_engine}
        self.warm_up = WarmUp(jobs)

    def settings(self, cwd: str) -> Settings:
        """The settings for a session in that directory. Raises `SettingsError`."""
        return load_settings(self.environ, self.flags, cwd)

    @asynccontextmanager
    async def session_scope(self, session_id: str, spec: SessionSpec, peer: Peer) -> AsyncGenerator[LiveSession]:
        """Build a session, enter what it needs in order, and leave it in reverse, also where an entering fails."""
        settings = self.settings(spec.cwd)
        container = await self._container()
        plug_ins = cast("PlugIns", await self.warm_up.result("plug-ins"))
        box = container.session(
            session_id=session_id,
            spec=spec,
            peer=peer,
            settings=settings,
            engine=self.engines.get(settings.model),
            plug_ins=plug_ins,
        )
        async with AsyncExitStack() as stack:
            for resource in cast("list[AbstractAsyncContextManager[object]]", box.lifecycle()):
                await stack.enter_async_context(resource)
            yield box.session()

    async def aclose(self) -> None:
        """Let go of what sessions shared, in bounded time."""
        with anyio.move_on_after(CLOSE_LIMIT_S, shield=True):
            await self.engines.aclose()
        if self._usage is not None:
            with anyio.move_on_after(CLOSE_LIMIT_S, shield=True):
                await self._usage.aclose()

    async def _container(self) -> ProcessContainer:
        return cast("ProcessContainer", await self.warm_up.result("container"))

    def _build_container(self) -> ProcessContainer:
        from punie.adapters.schema.argument_validator import JsonSchemaRsValidator
        from punie.adapters.storage.sqlite import SqliteUsageLedger
        from punie.bootstrap.container import ProcessContainer
        from punie.bootstrap.state import database_file

        # The first check loads the validator's library: here, and not while the first call waits.
        JsonSchemaRsValidator().problems(EMPTY_OBJECT, EMPTY_OBJECT)
        self._usage = SqliteUsageLedger(database_file(self.environ), self.log)
        return ProcessContainer(shell=_shell_info(self.environ), log=self.log, usage_ledger=self._usage)

    def _scan_plug_ins(self) -> PlugIns:
        self.engines.plug_ins = scan(self.log) if self.plug_ins is None else self.plug_ins
        return self.engines.plug_ins

    def _load_engine(self) -> None:
        """Load the configured engine's library ahead of the first prompt, which hears of what goes wrong."""
        try:
            model = self.settings(os.devnull).model
            self.engines.load(model)
        except PunieError as error:
            self.log.info("the engine is not ready: %s", error)


def _shell_info(environ: Mapping[str, str]) -> object:
    from punie.application.tools.shell_info import ShellInfo

    return ShellInfo(
        system=platform.system(),
        release=platform.release(),
        machine=platform.machine(),
        shell=environ.get("SHELL") or environ.get("COMSPEC") or "/bin/sh",
        python=platform.python_version(),
    )
