"""Templates of plans: what fills a placeholder, and how everything that is wrong is located."""

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each_case

from loopwright.adapters.sources.spec.loop_template import TEMPLATE, read_template
from loopwright.adapters.sources.text.located import read_yaml
from loopwright.core.values.errors import BadPlan

GOOD = """\
description: Fix one endpoint
parameters:
  endpoint: {description: Its path, pattern: "[a-z/]+"}
  goal: {default: make it faster}
  level: {choices: [low, high], default: low}
plan:
  title: Fix {{endpoint}}
  tasks:
    - id: fix
      title: "{{ goal }}"
      description: "Look at {{endpoint}}: {{goal}}"
      acceptance: pytest -q tests/{{endpoint}}_test.py
      complexity: "{{level}}"
      priority: 3
"""


def problems(text: str) -> list[str]:
    with pytest.raises(BadPlan) as refused:
        read_template("fix", text.encode())
    return list(refused.value.problems)


def test_placeholders_are_filled_with_values_and_defaults() -> None:
    template = read_template("fix", GOOD.encode())
    assert template.description == "Fix one endpoint"
    plan = json.loads(template.filled({"endpoint": "api/users", "goal": "say {{endpoint}}"}))
    assert plan["title"] == "Fix api/users"
    (task,) = plan["tasks"]
    assert task["title"] == "say {{endpoint}}", "a value is not looked at again"
    assert (task["acceptance"], task["complexity"]) == ("pytest -q tests/api/users_test.py", "low")
    assert task["priority"] == 3
    jsonschema.validate(read_yaml(GOOD).plain(), TEMPLATE)


@each_case(
    "values, expected",
    [
        ({}, "values.endpoint: this value is required"),
        ({"endpoint": "a; rm -rf /"}, "values.endpoint: expected a text that matches [a-z/]+"),
        ({"endpoint": "a", "level": "mid"}, 'values.level: expected one of "low", "high"'),
        ({"endpoint": "a", "gaol": "x"}, 'values.gaol: unknown parameter (did you mean "goal"?)'),
        (
            {"endpoint": "a", "goal": "x" * 20_001},
            "values.goal: expected a text of at most 20,000 characters",
        ),
    ],
)
def test_values_that_do_not_fit_are_named(values: dict[str, str], expected: str) -> None:
    with pytest.raises(BadPlan) as refused:
        read_template("fix", GOOD.encode()).filled(values)
    assert refused.value.problems == (expected,)


@each_case(
    "old, new, expected",
    [
        ('"[a-z/]+"', '"[a-z"', "fix.yaml:3: parameters.endpoint.pattern: this is not a regular expression"),
        (
            ', pattern: "[a-z/]+"',
            "",
            'fix.yaml:12: plan.tasks[0].acceptance: the parameter "endpoint" needs choices or a pattern',
        ),
        ("{{goal}}", "{{gaol}}", 'fix.yaml:11: plan.tasks[0].description: unknown placeholder "gaol"'),
        ("default: low", "default: mid", 'fix.yaml:5: parameters.level.default: expected one of "low"'),
        ("description: Its path", "help: x", "fix.yaml:3: parameters.endpoint.help: unknown key"),
        ("description: Fix one endpoint", "plans: 1", "fix.yaml:1: plans: unknown key"),
        ("  endpoint: {", "  1-a: {", "fix.yaml:3: parameters.1-a: the name of a parameter has letters"),
        ("      priority: 3", '      "{{goal}}": 3', "needs choices or a pattern, because this is not prose"),
    ],
)
def test_what_is_wrong_with_a_template_has_its_line(old: str, new: str, expected: str) -> None:
    assert old in GOOD
    assert any(expected in one for one in problems(GOOD.replace(old, new)))


def test_a_file_that_is_not_yaml_is_refused_with_its_line() -> None:
    assert problems("plan: [")[0].startswith("fix.yaml:1")


@given(st.text(max_size=200))
def test_no_value_changes_anything_but_the_texts_that_name_it(value: str) -> None:
    text = "parameters: {x: {}}\nplan: {title: 'T {{x}}', tasks: [{id: a, title: '{{x}}'}]}\n"
    filled = read_template("t", text.encode())
    if "\0" in value:
        return
    plan = json.loads(filled.filled({"x": value}))
    assert plan == {"title": f"T {value}", "tasks": [{"id": "a", "title": value}]}
