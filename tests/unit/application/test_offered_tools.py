"""What goes to the model: few tools as ever, many only named until they are picked (issue 5, section 5)."""

from __future__ import annotations

import pytest
from attrs import evolve

from punie.application.offer.offered import LOADED_BY_ONE_SEARCH, NAMED_AT_ONCE, Elsewhere, OfferedTools
from punie.domain.permission.decisions import Policy
from punie.domain.permission.rules import Mode
from punie.domain.tools.disclosure import SEARCH_TOOLS, DisclosureForm, DisclosurePolicy
from punie.domain.tools.tool import ToolDescriptor, ToolOutcome, ToolSource
from tests.fakes.sixty_tools import sixty_tools
from tests.unit.application.desk_bench import DeskBench, RecordingTool, call, desk_of

pytestmark = pytest.mark.anyio

LINES = DisclosurePolicy(DisclosureForm.LINES)
OWN = ToolDescriptor("read_file", "read")


async def bench_of(policy: DisclosurePolicy = LINES, mode: Mode = Mode.ASK) -> DeskBench:
    bench = await desk_of(map(RecordingTool, (OWN, *sixty_tools())), policy=Policy(mode))
    bench.desk.offered.policy = policy
    return bench


def names(offered: OfferedTools) -> tuple[str, ...]:
    return offered.settle().names


async def test_the_same_object_is_offered_until_something_changes() -> None:
    offered = (await bench_of()).desk.offered
    first = await offered.current()
    assert await offered.current() is first
    offered.pick(["chat__add_reaction"])
    second = await offered.current()
    assert second is not first
    assert offered.pick(["chat__add_reaction"]) != ()
    assert await offered.current() is second, "picking again changes nothing"
    assert second.notes == first.notes, "what is told stays, for the provider's cache"
    assert second.names == (*first.names, "chat__add_reaction")


async def test_in_full_the_very_catalogue_is_offered() -> None:
    bench = await bench_of(DisclosurePolicy(DisclosureForm.FULL))
    assert bench.desk.offered.settle() is bench.toolbox.registry.catalog()
    assert bench.desk.offered.pick(["chat__add_reaction"]) == ()
    assert SEARCH_TOOLS not in names(bench.desk.offered)


async def test_names_in_a_query_are_loaded_and_nothing_else() -> None:
    offered = (await bench_of()).desk.offered
    found = offered.find("please chat__add_reaction, browser__navigate", 5)
    assert {tool.name for tool in found.loaded} == {"chat__add_reaction", "browser__navigate"}
    assert found.others == ()


async def test_a_search_loads_few_and_shows_the_others() -> None:
    offered = (await bench_of()).desk.offered
    found = offered.find("pull request", 10)
    assert 1 <= len(found.loaded) <= LOADED_BY_ONE_SEARCH
    assert names(offered)[2:] == tuple(tool.name for tool in found.loaded)
    assert not {tool.name for tool in found.others} & set(names(offered))


async def test_a_tool_that_is_switched_off_leaves_and_does_not_come_back_by_itself() -> None:
    bench = await bench_of()
    offered, registry = bench.desk.offered, bench.toolbox.registry
    offered.pick(["chat__add_reaction"])
    assert registry.set_enabled("chat__add_reaction", enabled=False)
    assert "chat__add_reaction" not in names(offered)
    assert "add_reaction:" not in offered.settle().notes
    assert "chat__add_reaction" not in {tool.name for tool in offered.find("chat__add_reaction", 5).loaded}
    assert registry.set_enabled("chat__add_reaction", enabled=True)
    assert "chat__add_reaction" not in names(offered)
    assert "add_reaction:" in offered.settle().notes


async def test_a_changed_tool_leaves_and_is_searched_anew() -> None:
    bench = await bench_of()
    offered = bench.desk.offered
    offered.pick(["chat__add_reaction", "browser__navigate"])
    other = {tool.name: tool for tool in sixty_tools()}
    other["chat__add_reaction"] = evolve(other["chat__add_reaction"], description="Peel it.")
    bench.toolbox.registry.offer(map(RecordingTool, (OWN, *other.values())))
    assert names(offered) == ("read_file", SEARCH_TOOLS, "browser__navigate")
    assert [tool.description for tool in offered.find("peel", 5).loaded] == ["Peel it."]


async def test_a_new_turn_keeps_the_latest_of_what_was_picked_within_the_share() -> None:
    offered = (await bench_of(DisclosurePolicy(DisclosureForm.LINES, share=0.003))).desk.offered
    picked = [tool.name for tool in sixty_tools()[:12]]
    for name in picked:
        offered.pick([name])
    assert len(names(offered)) == 14, "within a turn nothing is dropped"
    offered.begin_turn()
    left = names(offered)[2:]
    assert 0 < len(left) < 12
    assert list(left) == picked[-len(left) :]
    offered.policy = DisclosurePolicy(DisclosureForm.LINES, share=0.000001)
    offered.begin_turn()
    assert names(offered)[2:] == (picked[-1],)


@pytest.mark.parametrize("mode", list(Mode))
async def test_searching_runs_unasked_in_every_mode(mode: Mode) -> None:
    bench = await bench_of(mode=mode)
    bench.desk.offered.settle()
    result = await bench.turn().call(call(SEARCH_TOOLS, {"query": "emoji", "limit": 500}))
    assert result.outcome is ToolOutcome.SUCCEEDED
    assert bench.client.questions == []
    assert "chat__add_reaction (chat): Put an emoji on a message" in result.text
    assert result.structured is not None


@pytest.mark.parametrize("arguments", [{}, {"query": 5}, {"query": "x", "limit": "many"}])
async def test_a_search_with_wrong_arguments_is_refused(arguments: dict[str, object]) -> None:
    bench = await bench_of()
    bench.desk.offered.settle()
    result = await bench.turn().call(call(SEARCH_TOOLS, arguments))
    assert (result.outcome, result.code) == (ToolOutcome.FAILED, "invalid_arguments")


async def test_a_strangers_tool_of_that_name_keeps_it_and_everything_is_loaded() -> None:
    theirs = ToolDescriptor(SEARCH_TOOLS, "search", source=ToolSource.IDE)
    bench = await desk_of(map(RecordingTool, (theirs, *sixty_tools())))
    bench.desk.offered.policy = LINES
    assert bench.desk.offered.settle() is bench.toolbox.registry.catalog()
    assert len(names(bench.desk.offered)) == 61


class OneUnlisted(Elsewhere):
    def unlisted(self) -> tuple[str, ...]:
        return ("helper",)


async def test_auto_offers_the_named_tools_to_a_provider_that_searches_and_a_form_that_was_set_does_not() -> None:
    bench = await bench_of(DisclosurePolicy())
    offered = bench.desk.offered
    offered.pick(["chat__add_reaction"])
    searchable = offered.settle().searchable
    assert searchable is not None
    assert [tool.name for tool in searchable.offered] == ["read_file", "chat__add_reaction"]
    assert searchable.deferred == tuple(sixty_tools()), "a picked one too: the provider may have found it before"
    assert "chat__{" in searchable.notes
    assert searchable.brief.startswith("60 more tools can be found by searching for them: tracker 10")
    for form in (DisclosureForm.LINES, DisclosureForm.NAMES, DisclosureForm.FULL):
        assert (await bench_of(DisclosurePolicy(form))).desk.offered.settle().searchable is None
    assert (await bench_of(DisclosurePolicy(share=1.0))).desk.offered.settle().searchable is None


async def test_our_search_stands_beside_a_providers_for_servers_that_listed_nothing_yet() -> None:
    bench = await bench_of(DisclosurePolicy())
    bench.desk.offered.elsewhere = OneUnlisted()
    searchable = bench.desk.offered.settle().searchable
    assert searchable is not None
    assert [tool.name for tool in searchable.offered] == ["read_file", SEARCH_TOOLS]
    assert searchable.brief.endswith(f"{SEARCH_TOOLS} also starts and searches these servers: helper.")


IDES = (
    ToolDescriptor("search", "search", description="Search the web.", source=ToolSource.IDE),
    ToolDescriptor("open", description="Open a file in the editor.", source=ToolSource.IDE),
)


async def bench_with_ides_words() -> DeskBench:
    bench = await desk_of(map(RecordingTool, (OWN, *IDES, *sixty_tools())))
    bench.desk.offered.policy = LINES
    return bench


@pytest.mark.parametrize("query", ["search free time slots", "open a calendar, free slots"])
async def test_a_tool_whose_name_is_a_plain_word_does_not_keep_a_sentence_from_being_a_search(query: str) -> None:
    found = (await bench_with_ides_words()).desk.offered.find(query, 5)
    assert "agenda__find_free_slots" in {tool.name for tool in found.loaded}


async def test_names_that_are_plain_words_are_names_where_nothing_else_is_said() -> None:
    found = (await bench_with_ides_words()).desk.offered.find("open, search", 5)
    assert [tool.name for tool in found.loaded] == ["open", "search"]
    assert found.others == ()


@pytest.mark.parametrize("written", ["`{}`", '"{}"', "load {}.", "({})", "{}: what does it do?"])
async def test_a_name_counts_however_it_is_set_in_the_sentence(written: str) -> None:
    found = (await bench_of()).desk.offered.find(written.format("chat__search_messages"), 5)
    assert [tool.name for tool in found.loaded] == ["chat__search_messages"]
    assert found.others == ()


async def test_every_tool_that_is_named_is_loaded_whatever_the_limit_up_to_a_bound() -> None:
    offered = (await bench_of()).desk.offered
    every = [tool.name for tool in sixty_tools()]
    found = offered.find(" ".join(every[:9]), 1)
    assert [tool.name for tool in found.loaded] == every[:9]
    found = offered.find(" ".join(every), 1)
    assert [tool.name for tool in found.loaded] == every[:NAMED_AT_ONCE]
    assert [tool.name for tool in found.others] == every[NAMED_AT_ONCE:], "the model is told of each that it named"


async def test_a_tool_that_is_loaded_already_is_not_called_one_that_is_not() -> None:
    offered = (await bench_of()).desk.offered
    first = offered.find("post a message to a channel", 5)
    offered.pick(tool.name for tool in first.others)
    again = offered.find("post a message to a channel", 5)
    assert {tool.name for tool in again.loaded} == {tool.name for tool in (*first.loaded, *first.others)}
    assert again.others == ()


async def test_what_is_offered_anyway_is_told_to_be_loaded_when_it_is_named() -> None:
    offered = (await bench_of()).desk.offered
    found = offered.find("read_file", 5)
    assert found.loaded == (OWN,)
    assert found.others == ()
    assert "warehouse__describe_table" in {tool.name for tool in offered.find("read_file describe table", 5).loaded}


async def test_where_all_are_offered_in_full_a_search_calls_none_of_them_not_loaded() -> None:
    bench = await bench_of(DisclosurePolicy(share=1.0))
    bench.desk.offered.elsewhere = OneUnlisted()
    found = bench.desk.offered.find("post a message to a channel", 5)
    assert len(found.loaded) > 1
    assert found.others == ()
