"""Discovery of a session's tools: ask the client, apply the policy, keep the last good answer."""

from __future__ import annotations

import logging

import anyio
from attrs import define, evolve, field, frozen

from punie.application.tools.own_tools import PLANNABLE
from punie.domain.session.session import DiscoveryReport
from punie.domain.tools.catalog import ToolCatalog
from punie.domain.tools.discovery import (
    CatalogAnswer,
    ClientCapabilities,
    DroppedEntry,
    LocalTools,
    ToolPlan,
    plan_tools,
)
from punie.domain.tools.tool import ToolDescriptor
from punie.domain.values.display import one_line
from punie.ports.machine import Clock
from punie.ports.tools import ArgumentValidator, ToolProvider, ToolSourceError

DISCOVERY_LIMIT_S = 2.0
"""How long all pages of one discovery may take together."""


@frozen
class Discovery:
    """A finished discovery: the plan of the tools, and the report for the client."""

    plan: ToolPlan
    report: DiscoveryReport


@define
class DiscoverTools:
    """The discovery of one session; lives as long as the session. `provider` is None where the client has none."""

    session_id: str
    capabilities: ClientCapabilities
    provider: ToolProvider | None
    validator: ArgumentValidator
    clock: Clock
    local: LocalTools
    log: logging.Logger
    _last: Discovery | None = field(default=None, init=False)

    async def __call__(self) -> Discovery:
        """Ask, also again, and plan. After a failure the last good answer counts, or else the next tier."""
        started = self.clock.monotonic_s()
        answer = await self._ask()
        if answer is None and self._last is not None:
            return self._last
        plan = plan_tools(self.capabilities, answer, self.local, PLANNABLE)
        elapsed_ms = round((self.clock.monotonic_s() - started) * 1000)
        dropped = () if answer is None else answer.dropped
        self._last = Discovery(plan, DiscoveryReport(plan.tier, plan.tools_of_tier, dropped, elapsed_ms))
        self._say(self._last, asked=answer is not None)
        return self._last

    async def _ask(self) -> CatalogAnswer | None:
        if self.provider is None:
            return None
        try:
            with anyio.fail_after(DISCOVERY_LIMIT_S):
                return self._compiled(await self.provider.discover_tools())
        except TimeoutError:
            self._failed(f"no complete answer within {DISCOVERY_LIMIT_S:g} s")
        except ToolSourceError as error:
            self._failed(str(error))
        return None

    def _compiled(self, answer: CatalogAnswer) -> CatalogAnswer:
        """The answer without the tools whose schemas cannot be used."""
        kept: list[ToolDescriptor] = []
        dropped = list(answer.dropped)
        for tool in answer.catalog:
            problem = self.validator.schema_problem(tool.parameters)
            if problem is None:
                kept.append(tool)
            else:
                dropped.append(DroppedEntry(tool.name, f"its schema cannot be used: {one_line(problem, 400)}"))
        return evolve(answer, catalog=ToolCatalog(kept), dropped=tuple(dropped))

    def _failed(self, reason: str) -> None:
        kept = "the tools stay as they were" if self._last is not None else "using the next tier"
        self.log.warning("session %s: tool discovery failed: %s; %s", self.session_id, reason, kept)

    def _say(self, discovery: Discovery, *, asked: bool) -> None:
        report = discovery.report
        names = ", ".join(f"{entry.name} ({entry.reason})" for entry in report.dropped) or "none"
        self.log.info(
            "session %s: tools from tier %s (%d), catalogue %s, dropped: %s",
            self.session_id, report.tier.value, report.tools, "answered" if asked else "not asked", names,
        )  # fmt: skip
