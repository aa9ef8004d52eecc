"""The exit code of a turn, with which `punie ask` ends, and `punie chat` without a screen."""

from __future__ import annotations

from punie.adapters.direct.engine import DirectSession
from punie.application.turns.budget import Measure
from punie.application.turns.live_session import LiveSession
from punie.commands.running import Exit
from punie.domain.session.prompt_files import typed_in
from punie.domain.session.turn import StopReason, TurnReport
from punie.domain.values.content import Prompt


def exit_of_turn(report: TurnReport, session: LiveSession, text: str, *, denied: bool) -> int:
    """The exit code of the turn that answered that text.

    `denied`: a call of it was denied, and no later one succeeded. A prompt may be answered and yet not carried out:
    there is no such command, or a command failed.
    """
    if report.limit is not None:
        return Exit.LATE if report.limit.endswith(Measure.TIME) else Exit.FAILED
    if report.stop_reason is not StopReason.END_TURN:
        return Exit.FAILED
    if denied:
        return Exit.DENIED
    typed = typed_in(Prompt.of_text(text))
    if typed is not None and all(typed.name != info.name for info in session.commands.offered(session)):
        return Exit.USAGE
    return Exit.FAILED if isinstance(session.engine, DirectSession) and session.engine.failed else Exit.DONE
