"""Which project settings files a person trusts, as the user's state remembers them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from punie.adapters.storage.state_file import StateFile
from punie.adapters.storage.trust import SqliteTrustStore
from punie.bootstrap.settings.files import database_file
from punie.bootstrap.settings.settings import Trusted


def stored_trust(environ: Mapping[str, str], log: logging.Logger) -> Trusted:
    """What the user's state says of trusted files; nothing is opened before it is asked."""
    return SqliteTrustStore(StateFile(database_file(environ), log)).trusts
