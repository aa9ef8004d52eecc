"""Who may add to a session: one process at a time, and how it is known that the one before is gone."""

from __future__ import annotations

from attrs import frozen

LEASE_S = 60.0
"""How long a process of another machine is believed to live after it last said so."""

THIS_PROCESS = "this process"

HAS_BEGUN = "a session that has begun cannot become another one's copy"


@frozen
class ProcessIdentity:
    """A process, so that no later one of the same number is taken for it.

    `machine` names the numbering that `pid` belongs to: two containers of one host have one each. `started` says when
    it began, in whatever form the system tells that; empty where the system does not.
    """

    machine: str
    pid: int
    started: str = ""


@frozen
class Holder:
    """Whose a session is, and when that process last said that it lives (seconds since the epoch)."""

    process: ProcessIdentity
    renewed_at: float


def held_by(holder: Holder, asking: ProcessIdentity, *, lives: bool | None, now: float) -> str | None:
    """In words who keeps the session from `asking`; None where it is free.

    `lives` is what the asking machine knows of the holder; None where it cannot know.
    """
    if holder.process == asking:
        return THIS_PROCESS
    if lives is False or (lives is None and now - holder.renewed_at >= LEASE_S):
        return None
    if holder.process.machine == asking.machine:
        return f"process {holder.process.pid} of this machine"
    return f"a process of another machine ({holder.process.machine})"
