"""What a file may say, and that nothing a file says breaks the reading of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from punie.adapters.expressions.python_expressions import PythonExpressions
from punie.adapters.schema.argument_validator import JsonSchemaRsValidator
from punie.application.pipelines.reading import PipelineReader
from punie.domain.pipelines.expressions import ExpressionError, Problem
from punie.domain.pipelines.pipeline import OnError
from punie.domain.pipelines.templates import Filling, TemplateReader
from tests.unit.application.pipelines.pipeline_bench import pipeline, read
from tests.unit.domain.json_trees import trees

STEP = '[[steps]]\nid = "s"\ntool = "t"\n'


def problems(text: str) -> list[str]:
    found = read(text)
    assert found.pipeline is None
    return [one.sentence() for one in found.problems]


def test_the_name_is_the_files_where_it_says_none() -> None:
    assert read(f'description = "x"\n{STEP}', stem="from-file").pipeline.name == "from-file"  # type: ignore[union-attr]
    assert "name: expected 1 to 64 of" in read(f'description = "x"\n{STEP}', stem="a b").problems[0].sentence()


@pytest.mark.parametrize("name", ["read_file", "run_command", "search_tools", "update_plan", "switch_mode", "run_code"])
def test_no_pipeline_passes_for_a_tool_of_punies_own(name: str) -> None:
    assert any("Punie's own" in one for one in problems(f'name = "{name}"\ndescription = "x"\n{STEP}'))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "steps: expected at least one [[steps]]"),
        ('steps = "x"', "steps: expected at least one"),
        ("steps = [1]", "steps[0]: expected a table"),
        ("inputs = 3\n" + STEP, "inputs: expected tables"),
        ('[inputs]\n"a b" = { type = "string" }\n' + STEP, "inputs.a b: expected a name"),
        ("[inputs]\nx = 3\n" + STEP, "inputs.x: expected a table"),
        ('[[steps]]\nid = "class"\ntool = "t"', "steps[0].id: expected a name"),
        (STEP + "arguments = 3", "steps[0].arguments: expected a table"),
        (STEP + "arguments = { at = 2026-01-01 }", "steps[0].arguments.at: a date has no form in JSON"),
        (STEP + 'arguments = { x = "${inputs.x" }', "character 1: `${` without a `}`"),
        (STEP + "when = 3", "steps[0].when: expected an expression, true or false"),
        (STEP + 'when = "${true} and ${false}"', "expected one expression and nothing beside it"),
        (STEP + 'when = "a ="', "steps[0].when, character"),
        (STEP + "on_error = { use = 1 }", "steps[0].on_error: expected"),
        (STEP + "parallel = 17", "steps[0].parallel: expected true, false, or how many"),
        (STEP + 'for_each = "${item}"', "item is there in steps with for_each only"),
        (STEP + 'arguments = { x = "${steps.s}" }', "the step s has not run by then"),
        (STEP + 'arguments = { x = "${steps}" }', "name the step: steps.ID"),
        ('[inputs.path]\ntype = "string"\n' + STEP + 'arguments = { x = "${inputs.pth}" }', "did you mean path?"),
        ("x" + ".x" * 60 + " = 1", "its values are nested deeper than 50 levels"),
        (STEP + "arguments = { n = nan }", "inf and nan have no form in JSON"),
        (STEP * 51, "steps: there are 51 steps; at most 50"),
        (STEP + 'arguments = { x = "' + "${1}" * 501 + '" }', "it has 501 expressions; at most 500"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    assert any(said in one for one in problems(text)), problems(text)


def test_steps_that_run_at_the_same_time_know_nothing_of_each_other() -> None:
    text = (
        '[[steps]]\nid = "a"\ntool = "t"\nparallel = true\n'
        '[[steps]]\nid = "b"\ntool = "t"\nparallel = true\narguments = { x = "${steps.a}" }\n'
    )
    assert any("the step a has not run by then" in one for one in problems(text))


def test_what_a_step_says_is_read() -> None:
    text = STEP + 'for_each = ["a", "${inputs}"]\nparallel = 4\non_error = { default = { n = 0 } }\nwhen = "item"\n'
    (step,) = pipeline(text).steps
    assert (step.at_once, step.beside, step.on_error, step.fallback) == (4, False, OnError.CONTINUE, {"n": 0})


def filled(text: str) -> object:
    misread: list[Problem] = []
    template = TemplateReader(PythonExpressions().parse, misread).read(text, "x")
    assert misread == []
    return Filling(lambda expression: {"a": 1, "b": "t", "c": "}"}[expression.text], lambda _units: None).fill(template)


def test_strings_are_literal_but_for_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    language = PythonExpressions()
    monkeypatch.setattr(PythonExpressions, "parse", lambda _self, text: language_parse(language, text))
    assert filled("plain $ {a} $$ }") == "plain $ {a} $$ }"
    assert filled("${a}") == 1
    assert filled("-${a}-${b}") == "-1-t"
    assert filled("$${a} ${a}") == "${a} 1"
    assert filled("$${a}") == "${a}"
    assert filled("") == ""


def language_parse(_language: PythonExpressions, text: str) -> Any:
    from punie.domain.pipelines.expressions import Expression

    if text not in {"a", "b", "c"}:
        raise ExpressionError("no")
    return Expression(text)


def test_a_brace_inside_an_expression_does_not_end_it() -> None:
    assert pipeline(STEP + """arguments = { x = "${ {'a': '}'}['a'] } and ${ '}' }" }""")


@given(st.dictionaries(st.sampled_from(["name", "description", "inputs", "steps", "output", "x"]), trees(), max_size=4))
@settings(max_examples=50, deadline=None)
def test_any_file_makes_a_pipeline_or_problems(table: dict[str, Any]) -> None:
    found = PipelineReader(PythonExpressions(), JsonSchemaRsValidator()).read(table, stem="x")
    assert (found.pipeline is None) == any(not one.warning for one in found.problems)


KEYS = ["id", "tool", "arguments", "when", "for_each", "parallel", "on_error", "more"]


@given(
    st.lists(
        st.dictionaries(st.sampled_from(KEYS), trees() | st.sampled_from(["s", "${item}", "${", "t"]), max_size=3),
        max_size=3,
    )
)
@settings(max_examples=50, deadline=None)
def test_any_steps_make_a_pipeline_or_problems(steps: list[dict[str, Any]]) -> None:
    table = {"description": "x", "steps": steps}
    found = PipelineReader(PythonExpressions(), JsonSchemaRsValidator()).read(table, stem="x")
    assert (found.pipeline is None) == bool(found.problems)
