"""Which requirements a run of the whole suite proved: those that a test wears which ran and passed, here and now.

A test that is skipped proves nothing, whatever the reason. So a whole run fails where every test of an owed requirement
was skipped, and names those tests with their reasons. A run of a part of the suite is not judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tools.requirements_report import Requirement, load_manifest, write_proved

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PROPERTY = "requirements"
PARTS = ("keyword", "markexpr", "lf", "deselect", "ignore", "ignore_glob", "collectonly", "last_failed")
"""Options of pytest that leave tests out."""


def register(config: pytest.Config) -> None:
    """Let the run of this configuration keep count; for `pytest_configure` of a conftest."""
    config.pluginmanager.register(Proofs(config), "punie-proofs")


def unproved(owed: Iterable[Requirement], proved: set[str], skipped: dict[str, set[str]]) -> dict[str, list[str]]:
    """The owed ids that no test proved, each with the skipped tests that wear it."""
    return {row.id: sorted(skipped.get(row.id, ())) for row in owed if row.id not in proved}


class Proofs:
    """What was heard of the tests of one run. In a process that runs tests for another one it only labels them."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.directs = not hasattr(config, "workerinput")
        self.proved: set[str] = set()
        self.skipped: dict[str, set[str]] = {}
        self.missing: dict[str, list[str]] = {}

    @property
    def whole(self) -> bool:
        """Whether nothing narrows the run to a part of the suite."""
        narrowed = any(self.config.getoption(name, None) for name in PARTS)
        return self.config.args_source is pytest.Config.ArgsSource.TESTPATHS and not narrowed

    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        """Each test carries the ids that it wears to whoever hears of its end, in another process too."""
        for item in items:
            ids = sorted({str(row_id) for mark in item.iter_markers("requirement") for row_id in mark.args})
            if ids:
                item.user_properties.append((PROPERTY, ids))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test ended, or one of its stages. One that was expected to fail counts as skipped."""
        if type(report) is not pytest.TestReport:  # a part of a test: the test itself is heard of too
            return
        ids = {row_id for name, value in report.user_properties if name == PROPERTY for row_id in value}  # type: ignore[union-attr]
        if report.when == "call" and report.passed:
            self.proved |= ids
        elif report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else "expected to fail"
            for row_id in ids:
                self.skipped.setdefault(row_id, set()).add(f"{report.nodeid}: {reason}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """The run is over: judge it, where it was a whole one and nothing else failed."""
        if not self.directs or not self.whole or exitstatus != pytest.ExitCode.OK:
            return
        write_proved(self.proved, self.config.rootpath)
        manifest = load_manifest(self.config.rootpath)
        owed = [row for row in manifest.rows.values() if row.is_owed and row.issue in manifest.done]
        self.missing = unproved(owed, self.proved, self.skipped)
        if self.missing:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name what is not proved, and the tests that would have."""
        if self.missing:
            terminalreporter.section("requirements that no test of this run proved", red=True)
        for row_id, tests in self.missing.items():
            terminalreporter.line(f"{row_id}: {'every test was skipped' if tests else 'no test ran'}", red=True)
            for test in tests:
                terminalreporter.line(f"  {test}")
