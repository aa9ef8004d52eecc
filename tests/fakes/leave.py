"""A session's permission engine with memory only: the real rules, parser and questions, and no database."""

from __future__ import annotations

from punie.adapters.local.files.path_guard import LocalPathGuard
from punie.adapters.storage.memory_grants import MemoryAuditTrail, MemoryGrantStore, MemoryToolPins
from punie.application.desk.command_review import CommandReview
from punie.application.desk.permission import Approvals, LeaveToAct
from punie.application.desk.questions import OpenQuestions
from punie.domain.permission.decisions import Policy
from punie.ports.machine import Clock
from punie.ports.permission import PermissionBroker
from shellsight.parser.tree_sitter_bash import TreeSitterBashParser

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
