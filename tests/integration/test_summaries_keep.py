"""Ten conversations of about 150 KB, and what the agent is still told of them once they were summarised.

The summarising model is a program here: it copies lines that matter out of its request and knows nothing else.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from attrs import define, field

from punie.domain.model.compaction import DEFAULT_SHARE, CompactionOrder
from punie.domain.session.turn import StopReason, TurnLimits
from punie.domain.tools.tool import ToolCall, ToolResult
from tests.fakes.engine_side import FakeEventSink, FakeToolDoor, catalog_of
from tests.integration import engine_bench
from tests.integration.engine_bench import PLACES
from tests.integration.test_engine_compaction import said
from tests.stub_openai import Call, Failure, Recorded, Reply

pytestmark = pytest.mark.anyio

SMALL, USUAL = 48_000, 128_000
LAST = 4
"""The number of the last turn of a story, from 0."""

WORDS = ("order", "price", "stock", "route", "parcel", "invoice", "ledger", "customer", "window", "quota", "retry")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@define
class Story:
    """A made-up piece of work: prompts, the calls after each, their results, and what must not be lost."""

    seed: int
    one_by_one: bool = False
    dice: random.Random = field(init=False)
    turns: list[tuple[str, list[Reply]]] = field(factory=list, init=False)
    results: dict[str, ToolResult] = field(factory=dict[str, ToolResult], init=False)
    checklist: dict[str, list[str]] = field(factory=dict[str, list[str]], init=False)

    def __attrs_post_init__(self) -> None:
        self.dice = random.Random(self.seed)  # noqa: S311 - a story that is the same each time
        for number in range(LAST + 1):
            self.turns.append(self._turn(number))

    @property
    def size(self) -> int:
        return sum(len(result.text) for result in self.results.values())

    def _keep(self, kind: str, pattern: str) -> None:
        if len(self.turns) < LAST:  # the last turn is kept as it was
            self.checklist.setdefault(kind, []).append(pattern)

    def _name(self) -> str:
        return "_".join(self.dice.sample(WORDS, 2)) + f"_{self.dice.randrange(100, 1_000)}"

    def _call(self, tool: str, result: ToolResult | str, **arguments: object) -> Call:
        call_id = f"c{self.seed}-{len(self.results)}"
        self.results[call_id] = ToolResult.success(result) if isinstance(result, str) else result
        return Call(tool, arguments, call_id)

    def _turn(self, number: int) -> tuple[str, list[Reply]]:
        """A prompt, all calls in one message, and a decision."""
        kept, name, choice, why = (self._name() for _ in range(4))
        files = [f"src/shop/{self._name()}.py" for _ in range(3)]
        old, new = (f"    return {self._name()}\n" * 8 for _ in range(2))
        calls = [self._search(name), *map(self._read, files)]
        calls.append(self._call("edit_file", "1 replacement was made.", path=files[0], old_text=old, new_text=new))
        command = f"python -m pytest tests/test_{name}.py -q"
        lines = "".join(f"tests/test_{name}.py::test_{self._name()} PASSED\n" for _ in range(30))
        output = f"{lines}1 failed, 30 passed\n[exit code {number + 1}]"
        calls.append(self._call("run_command", output, command=command))
        if number % 2:
            denied = f"Denied: run `git push {name}`: a person said no. Nothing was done."
            calls.append(self._call("run_command", ToolResult.denied(denied), command=f"git push {name}"))
            self._keep("denials", rf"(?i)denied.*git push {name}")
        self._keep("ends", rf"{re.escape(command)}.*exit code {number + 1}")
        self._keep("decisions", rf"Decision: {choice} .*{why}")
        self._keep("decisions", rf"{kept} must keep its name")
        decided = f"Decision: {choice} is computed once, because {why} is slow."
        steps = self._in_messages(calls)
        steps.append(Reply(text=[f"The change is made. {decided}"], usage=None))
        return f"Mend {name}. {kept} must keep its name.", steps

    def _in_messages(self, calls: list[Call]) -> list[Reply]:
        """All calls in one message, or one in each: then old results are put away before anything is summarised."""
        groups = [[call] for call in calls] if self.one_by_one else [calls]
        return [Reply(calls=group, usage=None) for group in groups]

    def _search(self, name: str) -> Call:
        hits = [f"src/shop/{self._name()}.py:{self.dice.randrange(1, 900)}" for _ in range(12)]
        self._keep("lines", re.escape(hits[0]))
        return self._call("search_text", "\n".join(f"{hit}: call_{name}()" for hit in hits), query=name)

    def _read(self, path: str) -> Call:
        """A file with one line in it that matters, anywhere."""
        first, count = self.dice.randrange(1, 500), 190
        cause = self.dice.randrange(first, first + count)
        lines = [f"{line}\t    {self._name()} = {self._name()}" for line in range(first, first + count)]
        lines[cause - first] = f"{cause}\t    raise {self._name()}  # FIXME"
        head = f"[lines {first}-{first + count - 1} of 900; LF]"
        self._keep("files", re.escape(path))
        self._keep("lines", rf"{re.escape(path)}:{cause}\b")
        self._keep("ranges", rf"{re.escape(path)}.*\b{first}-{first + count - 1}\b")
        return self._call("read_file", "\n".join([head, *lines]), path=path, line=first, limit=count)


def extract(record: str) -> str:
    """A summary out of the record alone: prompts, decisions, files, and the lines that are marked in what was read."""
    told: list[str] = []
    path = command = ""
    for line in record.splitlines():
        if call := re.match(r'CALL (?:read|edit)_file: .*"path": ?"([^"]+)"', line):
            path = call[1]
            told.append(f"File {path}")
        elif call := re.match(r'CALL run_command: .*"command": ?"([^"]+)"', line):
            command = call[1]
        elif marked := re.match(r"(\d+)\t.*# FIXME", line):
            told.append(f"{path}:{marked[1]} raises")
        elif line.startswith("[exit code"):
            told.append(f"{command} ended with {line}")
        elif line.startswith("USER: ") or "Decision:" in line or "Denied:" in line:
            told.append(line[:300])
        elif hit := re.match(r"(?:RESULT of search_text \(success\): )?(src/\S+:\d+): ", line):
            told.append(hit[1])
    return " \n".join(dict.fromkeys(told))


def judged(story: Story, text: str) -> dict[str, tuple[int, int]]:
    """How many of each kind of facts the text holds, and how many there are."""
    return {
        kind: (sum(re.search(pattern, text) is not None for pattern in patterns), len(patterns))
        for kind, patterns in story.checklist.items()
    }


async def told_after(story: Story, library: str, context: int, summarise: Callable[[str], str]) -> str:
    """Everything that the model is sent after the summary, where a longer request than its context is refused."""

    def answer(steps: list[Reply], request: Recorded) -> Any:
        asked = str(request.messages[-1]["content"])
        if len(request.raw) / 3.5 > context or "about to leave your context" in asked:
            return Failure.context_length()  # then the summary is asked of a record
        if "<record>" in str(request.messages[-1]["content"]):
            assert "tools" not in request.body
            return Reply(text=[summarise(str(request.messages[-1]["content"]))], usage=None)
        return steps.pop(0)

    def result(call: ToolCall) -> ToolResult:
        return story.results[call.id]

    tools = ("search_text", "read_file", "edit_file", "run_command")
    door = FakeToolDoor(catalog_of(*tools), dict.fromkeys(tools, result))
    limits = TurnLimits(compact_above_tokens=int(context * DEFAULT_SHARE))
    steps = [reply for _, replies in story.turns for reply in replies]
    steps.append(Reply(text=["I go on."], usage=None))
    async with engine_bench.talking(PLACES[library], [partial(answer, steps)] * 80, door=door) as talk:
        for prompt, _ in story.turns:
            assert await talk.say(prompt, limits=limits) is StopReason.END_TURN
        if context == USUAL or story.one_by_one:
            order = CompactionOrder("c-1", above_tokens=limits.compact_above_tokens)
            assert await talk.session.compact(order, events=FakeEventSink())
        assert await talk.say("Go on.", limits=limits) is StopReason.END_TURN
        return said(talk.messages()).replace('\\"', '"')


@pytest.mark.parametrize(("seed", "context"), [(seed, SMALL if seed < 7 else USUAL) for seed in range(10)])
async def test_what_a_checklist_asks_for_is_still_told_after_the_summary(seed: int, context: int) -> None:
    story = Story(seed)
    library = ("pydantic_ai", "openai_agents-chat")[seed % 2]
    text = await told_after(story, library, context, extract)
    found = judged(story, text)
    assert 120_000 < story.size < 180_000
    assert all(have == wanted for have, wanted in found.values()), found


@pytest.mark.parametrize("library", ["pydantic_ai", "openai_agents-chat"])
async def test_even_a_poor_summary_comes_with_files_lines_ends_and_denials(library: str) -> None:
    for one_by_one in (False, True):
        story = Story(11, one_by_one)
        text = await told_after(story, library, SMALL, lambda _: "Some work was done.")
        assert "Some work was done." in text
        found = judged(story, text)
        for kind in ("files", "ranges", "ends", "denials"):
            assert found[kind][0] == found[kind][1], (kind, found)
