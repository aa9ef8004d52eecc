"""What a model is told of a denial: the word, the part, whether the rest would run, and a nearer way."""

from __future__ import annotations

import pytest

from punie.application.desk.denials import denial
from punie.domain.permission.decisions import Facts, PermissionRequest, Policy
from punie.domain.permission.policy import decide
from punie.domain.permission.rules import Mode, Rule, Verdict
from tests.fuzz import engine

NOBODY = "nobody is there to ask ({})"


def told(line: str, *offered: str, mode: Mode = Mode.AUTO, denied: str = NOBODY, rules: tuple[Rule, ...] = ()) -> str:
    """The words about a line that `mode` does not allow."""
    report = engine.command_review._worked_out(engine.Command.of(line, None, engine.CWD), engine.PARSER, engine.HOME)
    places = {path: engine.GUARD.locate_now(path) for path in engine.paths_to_follow(report)}
    facts = Facts(command=engine.with_places(report, places), cwd=engine.CWD, roots=(engine.CWD,))
    decision = decide(PermissionRequest(engine.TOOL, {"command": line}), Policy(mode, rules), facts)
    assert decision.verdict is not Verdict.ALLOW
    parts = () if facts.command is None else facts.command.parts
    return denial(denied.format(decision.reason), decision, parts, offered.__contains__)


def test_a_line_of_several_commands_names_the_one_that_asks_and_those_that_would_run():
    assert told("git stash drop && ls", "restore_file") == (
        "nobody is there to ask (`git stash drop`: changes the stash or applies it); `ls` would run by itself. "
        "Nothing was done."
    )
    assert told("git reset --hard", "restore_file").endswith(" Nothing was done. restore_file undoes a file.")
    assert told("rm -rf src; pwd; dd if=a of=/dev/sda; ls").endswith(
        "; also `rm -rf src`: deletes without asking, or whole folders; `pwd`, `ls` would run by themselves. "
        "Nothing was done."
    )


def test_a_single_command_is_not_named_again():
    assert told("git stash drop") == "nobody is there to ask (changes the stash or applies it). Nothing was done."


@pytest.mark.parametrize("line", [
    "sed -n p $(cat x)", "rm $(cat x)", "touch $(cat x)", "git log $(cat x)", "sort $(cat x)", "find $(cat x)",
    "uniq $(cat x)", "cp a $(cat x)", "grep x $(cat x)",
])  # fmt: skip
def test_a_word_in_doubt_is_named_and_the_model_told_to_write_it_out(line: str):
    said = told(line)
    assert "$(cat x)" in said
    assert said.endswith(" Nothing was done. Find out first what its words become, and write them out.")


def test_a_word_is_named_on_one_line_and_bounded():
    said = told(f"touch \"$(echo '{'x' * 500}\n\x1b[31m')\"")
    assert "\n" not in said
    assert "\x1b" not in said
    assert len(said) < 400


@pytest.mark.parametrize(("denied", "rule"), [("the user rejected it", ()), (NOBODY, (Rule(Verdict.DENY, id="no"),))])
def test_no_way_around_a_person_or_a_rule_is_told(denied: str, rule: tuple[Rule, ...]):
    said = told("git reset --hard && ls", "restore_file", denied=denied, rules=rule)
    assert "restore_file" not in said


def test_a_mode_that_only_looks_names_the_way_out_where_it_is_offered():
    said = told("touch x", "switch_mode", "edit_file", mode=Mode.READ_ONLY, denied="{}")
    assert said.endswith(". Nothing was done. switch_mode asks for more than looking.")


@pytest.mark.parametrize(("mode", "way"), [
    (Mode.ASK, ""), (Mode.ACCEPT_EDITS, " edit_file changes a file."), (Mode.AUTO, " edit_file changes a file."),
])  # fmt: skip
def test_a_tool_is_named_only_where_the_mode_allows_it_unasked(mode: Mode, way: str):
    assert told("sed -i 's/a/b/e' x", "edit_file", mode=mode).endswith(f"Nothing was done.{way}")
