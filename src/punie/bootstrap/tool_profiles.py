"""The profiles of well-known servers' tools, which are data beside this module, and their use in a session."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from punie.application.offer.assemble import OtherParties
from punie.application.tools.session_tool import Services
from punie.bootstrap.session_setup import SessionSetup
from punie.bootstrap.settings.keys import LOCAL_TOOLS
from punie.domain.tools.catalog import LocalTools
from punie.ports.people import Peer
from punie.ports.workspace import Workspace
from shellsight.arguments.profiles import Profile


@cache
def tool_profiles() -> tuple[Profile, ...]:
    """The profiles that come with Punie; read once."""
    text = files("punie.bootstrap").joinpath("tool_profiles.toml").read_text("utf-8")
    return tuple(Profile.of(**profile) for profile in tomllib.loads(text)["profile"])


def other_parties(setup: SessionSetup, peer: Peer, local: Services) -> OtherParties:
    """Makes the session's tools of other parties. Old texts are read by the client where it reads, else by `local`."""
    if peer.capabilities.read_text_file:
        return OtherParties(tool_profiles(), peer.workspace)
    unread = setup.settings[LOCAL_TOOLS] is LocalTools.NEVER
    return OtherParties(tool_profiles(), None if unread else local.get(Workspace))
