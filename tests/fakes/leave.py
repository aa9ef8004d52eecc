"""A session's permission engine with memory only: the real rules, parser and questions, and no database."""

from __future__ import annotations

from punie.adapters.local.path_guard import LocalPathGuard
from punie.adapters.shell.tree_sitter_bash import TreeSitterBashParser
from punie.adapters.storage.memory_grants import MemoryAuditTrail, MemoryGrantStore, MemoryToolPins
from punie.application.command_review import CommandReview
from punie.application.leave_to_act import Approvals, LeaveToAct
from punie.application.open_questions import OpenQuestions
from punie.domain.decisions import Policy
from punie.ports.clock import Clock
from punie.ports.permission_broker import PermissionBroker

HOME = "/home/nobody-here"


def memory_approvals(kept_rows: int = 10_000) -> Approvals:
    """What outlives a session, for as long as the test."""
    return Approvals(MemoryGrantStore(), MemoryToolPins(), MemoryAuditTrail(kept_rows))


def leave_of(
    session_id: str,
    roots: tuple[str, ...],
    broker: PermissionBroker,
    clock: Clock,
    *,
    policy: Policy | None = None,
    approvals: Approvals | None = None,
) -> LeaveToAct:
    """The engine of a session in the first of these directories."""
    guard = LocalPathGuard(roots, roots[0])
    return LeaveToAct(
        session_id=session_id,
        cwd=roots[0],
        roots=roots,
        policy=policy or Policy(),
        review=CommandReview(TreeSitterBashParser(), guard, HOME),
        guard=guard,
        approvals=approvals or memory_approvals(),
        questions=OpenQuestions(broker),
        clock=clock,
    )
