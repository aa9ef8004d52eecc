"""Where log lines go: stderr, which IDEs show, or a file."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path

from punie.domain.values.display import display_safe

MAX_LOG_BYTES = 5 * 1_048_576
KEPT_FILES = 3


class _SafeFormatter(logging.Formatter):
    """Nothing that a peer wrote reaches a terminal as control characters."""

    def format(self, record: logging.LogRecord) -> str:
        return display_safe(super().format(record))


def start_logging(environ: Mapping[str, str], log_file: str | None) -> logging.Logger:
    """Set up the process's logging once and give its logger. `PUNIE_LOG_LEVEL` chooses the level (default INFO).

    Raises `OSError` where the file cannot be written.
    """
    handler: logging.Handler
    if log_file is not None:
        from logging.handlers import RotatingFileHandler  # sockets and pickles come with it: only where it is needed

        Path(log_file).parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(
            log_file, maxBytes=MAX_LOG_BYTES, backupCount=KEPT_FILES, encoding="utf-8", errors="replace"
        )
    else:
        handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_SafeFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    level = logging.getLevelNamesMapping().get(environ.get("PUNIE_LOG_LEVEL", "INFO").upper(), logging.INFO)
    log = logging.getLogger("punie")
    for former in log.handlers:
        former.close()
    log.handlers[:] = [handler]
    log.setLevel(level)
    log.propagate = False
    return log
