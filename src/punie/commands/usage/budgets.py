"""The budgets of the settings with what is left of them, for `punie usage` and `punie doctor`."""

from __future__ import annotations

import time
from collections.abc import Sequence

from punie.adapters.local.machine import local_person
from punie.application.turns.budget import Allowance, Budget, Span, day_began
from punie.ports.sessions import UsageLedger


async def budgets_of(budget: Budget, ledger: UsageLedger, session_id: str | None = None) -> tuple[Allowance, ...]:
    """The limits of the settings, with what this account used of a day and of a session that is named."""
    if not budget.limits:
        return ()
    today = await ledger.turns(since=day_began(time.time()), persons=local_person().books)
    here = None if session_id is None else await ledger.turns(session_id=session_id)
    turns = {Span.TURN: None, Span.SESSION: here, Span.DAY: today}
    used = {span: None if some is None else budget.spent_in(some) for span, some in turns.items()}
    spent = ((limit, used[limit.span]) for limit in budget.limits)
    return tuple(Allowance(limit, None if of is None else of[limit.measure]) for limit, of in spent)


def budgets_json(budgets: Sequence[Allowance]) -> list[dict[str, object]]:
    """A row each; `used` and `left` are null where a turn or a session begins anew."""
    return [{"name": one.limit.name, "most": one.limit.most, "used": one.used, "left": one.left} for one in budgets]


def budgets_text(budgets: Sequence[Allowance]) -> str:
    """A line each; empty where there is no budget."""
    return "".join(f"{line}\n" for line in ("\nBudgets:\n", *map(str, budgets))) if budgets else ""
