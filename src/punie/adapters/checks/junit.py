"""pytest's JUnit report, read without trusting it: no document type, no entities, bounded."""

from __future__ import annotations

import re
from typing import Any
from xml.parsers import expat

from attrs import define, field

from punie.adapters.checks.problems import ReportError
from punie.domain.tools.checks import FAILED_TESTS_LIMIT, FailedTest, TestReport

MESSAGE_LIMIT_CHARS = 1_500
"""The end of what a test said is kept: that is where the error stands."""

_BEGIN = re.compile(r'<\?xml version="1\.0" encoding="utf-8"\?><testsuites[ >]')
_CANDIDATES = 10
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_BAD = {"failure": "failed", "error": "error"}
_RAN = frozenset({0, 1, 2})
"""All passed; some failed; interrupted, as by a file that cannot be imported."""


def read_tests(text: str, exit_code: int) -> TestReport:
    """The report in pytest's output. Raises `ReportError`, also where no test ran."""
    if exit_code == 5:
        raise ReportError("it found no tests")
    if exit_code not in _RAN:
        raise ReportError(f"it ended with exit code {exit_code}, which means that it could not run the tests")
    report = _report(text)
    if exit_code == 0 and report.failed + report.errors:
        raise ReportError("its report names failed tests, but it ended with exit code 0")
    if not report.total:
        raise ReportError("its report names no test")
    return report


def _report(text: str) -> TestReport:
    """The last text that is a whole report: tests may print such things too, and pytest shows what they printed."""
    begins = [match.start() for match in _BEGIN.finditer(text)][-_CANDIDATES:]
    if not begins:
        raise ReportError("there is no report in its output")
    problem: ReportError | None = None
    for begin in reversed(begins):
        reader = _Reader()
        try:
            # pytest writes some characters into attributes that no XML may hold.
            reader.read(_NOT_XML.sub("\ufffd", text[begin:]))
        except ReportError as error:
            problem = problem or error
        else:
            return reader.report
    assert problem is not None  # noqa: S101 - there was a candidate, and none was read
    raise problem


@define
class _Reader:
    counts: dict[str, int] = field(factory=lambda: dict.fromkeys(("passed", "failed", "error", "skipped"), 0))
    problems: list[FailedTest] = field(factory=list)
    time_s: float = 0.0
    closed: bool = False
    _case: dict[str, str] = field(factory=dict)
    _outcome: str = "passed"
    _words: list[str] = field(factory=list)
    _listens: bool = False

    @property
    def report(self) -> TestReport:
        count = self.counts
        return TestReport(
            count["passed"], count["failed"], count["error"], count["skipped"], self.time_s, tuple(self.problems)
        )

    def read(self, text: str) -> None:
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._said
        parser.StartDoctypeDeclHandler = _refuse_doctype
        try:
            parser.Parse(text, True)
        except expat.ExpatError as error:
            # What pytest printed after the report is no part of it.
            if not self.closed:
                raise ReportError(f"its report is broken: {error}") from None
        if not self.closed:
            raise ReportError("its report is cut off")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "testsuite":
            self.time_s += float(attributes.get("time", "0") or 0)
        elif name == "testcase":
            self._case, self._outcome, self._words = attributes, "passed", []
        elif name == "skipped" and self._outcome == "passed":
            self._outcome = "skipped"
        elif name in _BAD:
            self._outcome = _BAD[name]
            self._words.append(f"{attributes.get('message', '')}\n")
            self._listens = True

    def _said(self, text: str) -> None:
        if self._listens:
            self._words.append(text)

    def _end(self, name: str) -> None:
        if name in _BAD:
            self._listens = False
        elif name == "testcase":
            self._count()
        elif name == "testsuites":
            self.closed = True

    def _count(self) -> None:
        self.counts[self._outcome] += 1
        if self._outcome in {"failed", "error"} and len(self.problems) < FAILED_TESTS_LIMIT:
            case = self._case
            line = case.get("line", "")
            words = "".join(self._words).strip()
            self.problems.append(
                FailedTest(
                    _test_id(case), case.get("file", ""), int(line) + 1 if line.isdigit() else 0, self._outcome,
                    words if len(words) <= MESSAGE_LIMIT_CHARS else f"[...] {words[-MESSAGE_LIMIT_CHARS:]}",
                )
            )  # fmt: skip


def _test_id(case: dict[str, str]) -> str:
    """The test as pytest names it on its command line, as far as the report tells."""
    file, name, inside = case.get("file", ""), case.get("name", ""), case.get("classname", "")
    if not file or not inside:
        return file or name
    module = file.removesuffix(".py").replace("/", ".")
    classes = inside.removeprefix(module).strip(".").replace(".", "::")
    return "::".join(part for part in (file, classes, name) if part)


def _refuse_doctype(*_declared: Any) -> None:
    raise ReportError("its report declares a document type, which pytest's never does")
