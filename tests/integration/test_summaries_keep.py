"""Ten conversations of about 150 KB, and what the agent is still told of them once they were summarised.

The summarising model is a program here: it copies lines that matter out of its request and knows nothing else. It is
asked as one more answer of the conversation, or of a record of it where the provider finds that too long.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
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
ASKED = "about to leave your context"
LAST = 4
"""The number of the last turn of a story, from 0."""

WORDS = ("order", "price", "stock", "route", "parcel", "invoice", "ledger", "customer", "window", "quota", "retry")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@define
class Story:
    """A made-up piece of work: prompts, the calls after each, their results, and what must not be lost.

    Its seed decides all names and numbers, how many files are read and how long each is, what commands print, and
    whether the model calls `one_by_one`: then old results are put away before anything is summarised, and what the
    model said of them is what is left.
    """

    seed: int
    one_by_one: bool = False
    dice: random.Random = field(init=False)
    turns: list[tuple[str, list[Reply]]] = field(factory=list, init=False)
    results: dict[str, ToolResult] = field(factory=dict[str, ToolResult], init=False)
    found: dict[str | None, str] = field(factory=dict[str | None, str], init=False)
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
        files = [f"src/shop/{self._name()}.py" for _ in range(2 + self.seed % 4)]
        old, new = (f"    return {self._name()}\n" * 8 for _ in range(2))
        calls = [self._search(name), *(self._read(path, 570 // len(files)) for path in files)]
        calls.append(self._call("edit_file", "1 replacement was made.", path=files[0], old_text=old, new_text=new))
        command = f"python -m pytest tests/test_{name}.py -q"
        tests = (5, 30, 90)[self.seed % 3]
        lines = "".join(f"tests/test_{name}.py::test_{self._name()} PASSED\n" for _ in range(tests))
        output = f"{lines}1 failed, {tests} passed\n[exit code {number + 1}]"
        calls.append(self._call("run_command", output, command=command))
        if number % 2:
            denied = f"Permission denied to run git push {name}: a person said no. Nothing was done."
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
        """All calls in one message, or one in each behind what the model found out with the call before."""
        if not self.one_by_one:
            return [Reply(calls=calls, usage=None)]
        said = [f"Found: {place}." if place else "Next." for place in ("", *(self.found.get(one.id) for one in calls))]
        return [Reply(text=[text], calls=[one], usage=None) for text, one in zip(said, calls, strict=False)]

    def _search(self, name: str) -> Call:
        hits = [f"src/shop/{self._name()}.py:{self.dice.randrange(1, 900)}" for _ in range(12)]
        self._keep("lines", re.escape(hits[0]))
        call = self._call("search_text", "\n".join(f"{hit}: call_{name}()" for hit in hits), query=name)
        self.found[call.id] = hits[0]
        return call

    def _read(self, path: str, count: int) -> Call:
        """A file with one line in it that matters, anywhere."""
        first = self.dice.randrange(1, 500)
        cause = self.dice.randrange(first, first + count)
        lines = [f"{line}\t    {self._name()} = {self._name()}" for line in range(first, first + count)]
        lines[cause - first] = f"{cause}\t    raise {self._name()}  # FIXME"
        head = f"[lines {first}-{first + count - 1} of 900; LF]"
        self._keep("files", re.escape(path))
        self._keep("lines", rf"{re.escape(path)}:{cause}\b")
        self._keep("ranges", rf"{re.escape(path)}.*\b{first}-{first + count - 1}\b")
        call = self._call("read_file", "\n".join([head, *lines]), path=path, line=first, limit=count)
        self.found[call.id] = f"{path}:{cause}"
        return call


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
        elif line.startswith("USER: ") or any(word in line for word in ("Decision:", "denied to", "Found:")):
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


def shown(messages: list[dict[str, Any]]) -> str:
    """A conversation in the lines of a record: each result behind its call."""
    results = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    lines: list[str] = []
    for message in messages:
        if message["role"] != "tool":
            words = str(message.get("content") or "")
            lines.append(f"USER: {words}" if message["role"] == "user" else words)
        for call in message.get("tool_calls") or ():
            made = call["function"]
            lines += [f"CALL {made['name']}: {json.dumps(json.loads(made['arguments']))}", results[call["id"]]]
    return "\n".join(lines)


@define
class Model:
    """Works through a story, and refuses what does not fit; `summarise` gets what it is shown, and nothing else.

    With `of_a_record` it finds the conversation itself too long to be summarised. `summaries` are those it wrote.
    """

    story: Story
    context: int
    of_a_record: bool
    summarise: Callable[[str], str]
    summaries: list[str] = field(factory=list, init=False)
    steps: list[Reply] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.steps = [reply for _, replies in self.story.turns for reply in replies]
        self.steps.append(Reply(text=["I go on."], usage=None))

    def __call__(self, request: Recorded) -> Any:
        asked = str(request.messages[-1]["content"])
        if len(request.raw) / 3.5 > self.context or (ASKED in asked and self.of_a_record):
            return Failure.context_length()
        if ASKED not in asked and "<record>" not in asked:
            return self.steps.pop(0)
        assert ("tools" in request.body) is (ASKED in asked)
        self.summaries.append(self.summarise(shown(request.messages[:-1]) if ASKED in asked else asked))
        return Reply(text=[self.summaries[-1]], usage=None)


async def told_after(model: Model, library: str) -> str:
    """Everything that the model is sent after its last summary."""

    def result(call: ToolCall) -> ToolResult:
        return story.results[call.id]

    story, context = model.story, model.context
    tools = ("search_text", "read_file", "edit_file", "run_command")
    door = FakeToolDoor(catalog_of(*tools), dict.fromkeys(tools, result))
    limits = TurnLimits(compact_above_tokens=int(context * DEFAULT_SHARE))
    async with engine_bench.talking(PLACES[library], [model] * 80, door=door) as talk:
        for prompt, _ in story.turns:
            assert await talk.say(prompt, limits=limits) is StopReason.END_TURN
        if context == USUAL or story.one_by_one:
            order = CompactionOrder("c-1", above_tokens=limits.compact_above_tokens)
            assert await talk.session.compact(order, events=FakeEventSink())
        assert await talk.say("Go on.", limits=limits) is StopReason.END_TURN
        assert model.summaries
        return said(talk.messages()).replace('\\"', '"')


@pytest.mark.parametrize("seed", range(10))
async def test_what_a_checklist_asks_for_is_still_told_after_the_summary(seed: int) -> None:
    story = Story(seed, one_by_one=seed in {3, 8})
    library = ("pydantic_ai", "openai_agents-chat")[seed % 2]
    model = Model(story, SMALL if seed < 7 else USUAL, seed % 4 < 2, extract)
    text = await told_after(model, library)
    found = judged(story, text)
    assert 120_000 < story.size < 180_000
    assert len(text) < story.size / 2
    assert all(have == wanted for have, wanted in found.values()), found


@pytest.mark.parametrize("library", ["pydantic_ai", "openai_agents-chat"])
async def test_even_a_poor_summary_comes_with_files_lines_ends_and_denials(library: str) -> None:
    for one_by_one in (False, True):
        story = Story(11, one_by_one)
        of_a_record = one_by_one is (library == "pydantic_ai")
        text = await told_after(Model(story, SMALL, of_a_record, lambda _: "Some work was done."), library)
        assert "Some work was done." in text
        found = judged(story, text)
        for kind in ("files", "ranges", "ends", "denials"):
            assert found[kind][0] == found[kind][1], (kind, found)
        assert found["decisions"][0] < found["decisions"][1] / 2, "the checklist asks for more than the list of calls"
