"""The agent's plan for a task of several steps, as a person follows it (ACP, agent plan)."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen


class StepStatus(StrEnum):
    """How far a step is; values are ACP's."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class StepPriority(StrEnum):
    """How much a step matters to the whole; values are ACP's."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@frozen
class PlanStep:
    """One step, in words for a person."""

    content: str
    status: StepStatus = StepStatus.PENDING
    priority: StepPriority = StepPriority.MEDIUM


Plan = tuple[PlanStep, ...]
