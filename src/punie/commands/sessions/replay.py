"""`punie sessions replay`: a recorded session run again, its tool calls answered from its log."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import partial
from math import inf

import anyio.to_thread
from attrs import evolve

from punie.adapters.keys.credentials import StoredKeys
from punie.adapters.local.files.path_guard import LocalPathGuard
from punie.adapters.local.machine import LocalClock
from punie.adapters.local.project_texts import LocalProjectNotes, LocalSkills
from punie.adapters.storage.sessions.event_codec import encoded
from punie.application.replay.recording import NoReplayError, Recording, read_recording
from punie.application.replay.run import AskedModel, Replay, recorded_tools
from punie.application.turns.instructions import Instructions
from punie.bootstrap.engines import Engines, engine_of
from punie.bootstrap.optional_parts import user_settings
from punie.bootstrap.settings.files import state_dir
from punie.bootstrap.settings.keys import ENGINE
from punie.bootstrap.settings.settings import Settings
from punie.commands.running import CommandError, Exit, command_environ, told, unless_interrupted
from punie.commands.sessions.replay_report import Asked, Report
from punie.commands.sessions.run import named_session, with_store
from punie.domain.errors import EngineError, EngineErrorKind
from punie.domain.model.provider import DIRECT
from punie.domain.session.log import SessionBegun, SituationTold
from punie.domain.session.situation import Situation
from punie.domain.tools.disclosure import DEFAULT_CONTEXT_TOKENS
from punie.domain.values.content import Prompt
from punie.domain.values.display import one_line
from punie.ports.sessions import SessionStore


def run_replay(*, given: str, model: str | None, engine: str | None, prompt: str | None, as_json: bool) -> int:
    """Replay a session and say where it goes another way; returns the exit code, 1 where it does."""

    async def work(store: SessionStore) -> int:
        summary = await named_session(store, given)
        recording = await read_recording(store, summary.id, lambda event: len(encoded(event)[1]))
        if model is None and engine is None and prompt is None:
            report = Report(recording, await Replay(recording, LocalClock()).run())
        else:
            report = await _asked(command_environ(), recording, _model(recording, model), engine, prompt)
        exit_code = Exit.DONE if report.same else Exit.FAILED
        return told(report.fields(), report.text(), as_json=as_json, exit_code=exit_code)

    try:
        return with_store(lambda store: unless_interrupted(partial(work, store)))
    except NoReplayError as error:
        raise CommandError(f"{one_line(given, 80)} cannot be replayed: {error}.", Exit.FAILED) from None


def _model(recording: Recording, given: str | None) -> str:
    """The model to ask: the given one, else the one that the log names first."""
    named = (turn.accepted.model for turn in recording.turns if not turn.commands_punie)
    model = given or next((name for name in named if name), None)
    if model is None:
        raise CommandError("the log names no model. Name one with --model.")
    return model


async def _asked(
    environ: Mapping[str, str], recording: Recording, model: str, engine: str | None, prompt: str | None
) -> Report:
    """The replay by that model. The settings are the user's own: a project's are not read."""
    settings = user_settings(environ, {"model": model, "engine": engine})
    for limit in settings.budget.limits:
        if limit.managed < inf:
            policy = f"the managed settings of this machine have budget.{limit.name}"
            raise CommandError(f"no budget counts what a replay asks of a model, and {policy}. Replay without flags.")
    engines = Engines(reach=StoredKeys(environ, state_dir(environ)).reach)
    try:
        made = engine_of(engines, settings)
        await anyio.to_thread.run_sync(engines.load, model, settings[ENGINE], abandon_on_cancel=True)
        catalog, unknown = recorded_tools(recording)
        session = made.open(recording.session_id)
        try:
            asked = AskedModel(
                model, session, catalog, await _instructions(recording, settings, model),
                evolve(settings.turn_limits, compact_above_tokens=_compact_above(settings)), settings.context_tokens,
            )  # fmt: skip
            instead = None if prompt is None else Prompt.of_text(prompt)
            done = await Replay(recording, LocalClock(), asked, instead).run()
        finally:
            await session.aclose()
    except EngineError as error:
        if error.kind == EngineErrorKind.CONFIGURATION.value:
            raise
        raise CommandError(str(error), Exit.MODEL) from None
    finally:
        await engines.aclose()
    return Report(recording, done, Asked(model, settings[ENGINE], len(catalog), unknown))


def _compact_above(settings: Settings) -> int:
    limits = settings.turn_limits
    return int((settings.context_tokens or DEFAULT_CONTEXT_TOKENS) * limits.compact_share)


async def _instructions(recording: Recording, settings: Settings, model: str) -> str:
    """The session's instructions: its facts as they were recorded, and its project's notes and skills as they are now.

    Nothing else is read in the project: the log has no copy of these.
    """
    begun = next((event for event in recording.before if isinstance(event, SessionBegun)), None)
    if begun is None or not all(map(os.path.isabs, (begun.cwd, *begun.additional_directories))):
        raise NoReplayError("its log does not say in which directory it worked")
    if model == DIRECT:
        return ""
    roots = (begun.cwd, *begun.additional_directories)
    if "\0" in "".join(roots):
        raise NoReplayError("its directory has no name that any system allows")
    situation = recording.first(SituationTold) or SituationTold("", (), Situation())
    notes = LocalProjectNotes(LocalPathGuard(roots, begun.cwd), begun.cwd, begun.additional_directories)
    skills = LocalSkills(settings.skills_folder, roots, logging.getLogger("punie"))
    return await Instructions(begun.cwd, notes, skills, told=situation).text(situation.now)
