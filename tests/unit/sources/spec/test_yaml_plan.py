"""Plans in YAML and JSON: what is read, and how everything that is wrong is located."""

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.adapters.sources.spec.plan_format import plan_schema
from loopwright.adapters.sources.spec.yaml_plan import YamlSource
from loopwright.adapters.sources.text import reading
from loopwright.core.values.errors import BadPlan
from loopwright.core.values.policy import GateCommand
from loopwright.ports import PlannedTask, PlannedWork

DOCS = Path(__file__).parents[4] / "docs" / "reference" / "plan-format.md"

GOOD = """\
title: Rate limiting
settings:
  parallel: 3
  limits: {hard: 45m, idle: off}
gates:
  - pytest -q
  - {name: lint, run: ruff check ., timeout: 2m, junit: out/lint.xml}
tasks:
  - id: limiter
    title: Add a token bucket
    description: |
      First line.
      Second line.
    criteria:
      - safe with threads
    acceptance: pytest -q tests/test_limits.py
    scope: [src/limits.py, "tests/**"]
    priority: 10
    max_attempts: 5
    agent: codex
    model: big
  - id: 7
    title: 2024-01-01
    depends_on: limiter
  - id: "../../etc; rm -rf /"
    title: An id is data
    depends_on: [limiter, 7, 7]
    acceptance: []
"""


def read(folder: Path, text: str | bytes, name: str = "plan.yaml") -> PlannedWork:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return reading.read(YamlSource(), path)


def problems(folder: Path, text: str | bytes, name: str = "plan.yaml") -> tuple[str, ...]:
    with pytest.raises(BadPlan) as caught:
        read(folder, text, name)
    return caught.value.problems


@pytest.mark.capability("C010", "C015")
def test_a_plan_is_read_with_everything_in_it(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD)
    assert found.lines == {
        "parallel": 3,
        "limits": 4,
        "limits.hard": 4,
        "limits.idle": 4,
        "tasks.limiter": 20,
        "tasks.7": 22,
        "tasks.../../etc; rm -rf /": 25,
    }
    assert replace(found, lines={}) == PlannedWork(
        title="Rate limiting",
        settings={"parallel": 3, "limits": {"hard": "45m", "idle": "off"}},
        gates=(
            GateCommand(name="pytest -q", command="pytest -q"),
            GateCommand(name="lint", command="ruff check .", timeout_s=120, junit="out/lint.xml"),
        ),
        tasks=(
            PlannedTask(
                key="limiter",
                title="Add a token bucket",
                description="First line.\nSecond line.",
                criteria=("safe with threads",),
                acceptance=(
                    GateCommand(
                        name="pytest -q tests/test_limits.py", command="pytest -q tests/test_limits.py"
                    ),
                ),
                scope=("src/limits.py", "tests/**"),
                priority=10,
                max_attempts=5,
                agent="codex",
                model="big",
            ),
            PlannedTask(key="7", title="2024-01-01", depends_on=("limiter",)),
            PlannedTask(key="../../etc; rm -rf /", title="An id is data", depends_on=("limiter", "7")),
        ),
        sha256=hashlib.sha256(GOOD.encode()).hexdigest(),
    )


def test_the_same_plan_in_json_is_the_same_work(tmp_path: Path) -> None:
    tree = {
        "title": "T",
        "settings": {"max_cost": 1.5, "allow_unverified": True},
        "gates": ["make", {"run": "make lint", "timeout": 5}],
        "tasks": [
            {"id": "a", "title": "A é 🙂", "priority": 1e1},
            {"id": "b", "title": "B", "depends_on": ["a"]},
        ],
    }
    compact, tabbed = json.dumps(tree), json.dumps(tree, indent="\t", ensure_ascii=False)
    work = read(tmp_path, compact, "plan.json")
    assert (
        work.tasks == read(tmp_path, tabbed, "plan.json").tasks == read(tmp_path, compact, "plan.yaml").tasks
    )
    assert work.settings == {"max_cost": 1.5, "allow_unverified": True}
    assert work.tasks[0].priority == 10
    assert work.tasks[0].title == "A é 🙂"


def test_without_gates_the_project_decides_and_an_empty_list_means_none(tmp_path: Path) -> None:
    task = "tasks: [{id: a, title: A}]\n"
    assert read(tmp_path, f"title: t\n{task}").gates is None
    assert read(tmp_path, f"title: t\ngates:\n{task}").gates is None
    assert read(tmp_path, f"title: t\ngates: []\n{task}").gates == ()


def test_anchors_may_be_used(tmp_path: Path) -> None:
    tasks = "- {id: a, title: A, acceptance: &c [make, make lint]}\n- {id: b, title: B, acceptance: *c}\n"
    text = f"title: t\ntasks:\n{tasks}"
    first, second = read(tmp_path, text).tasks
    assert first.acceptance == second.acceptance


def test_numbers_and_switches_are_read_as_yaml_writes_them(tmp_path: Path) -> None:
    text = "title: t\nsettings: {parallel: 0x10, max_attempts: 1_0, max_cost: 2.5, allow_unverified: true, model: ~}\n"
    assert read(tmp_path, text + TASK).settings == {
        "parallel": 16,
        "max_attempts": 10,
        "max_cost": 2.5,
        "allow_unverified": True,
        "model": None,
    }
    older = "%YAML 1.1\n---\ntitle: t\nsettings: {allow_unverified: yes}\n"
    assert read(tmp_path, older + TASK).settings == {"allow_unverified": True}


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    text = "\ufeff" + "title: t\ntasks:\n- id: a\n  title: A\n".replace("\n", "\r\n")
    assert read(tmp_path, text).tasks == (PlannedTask(key="a", title="A"),)


TASK = "tasks: [{id: a, title: A}]\n"


@pytest.mark.capability("C004")
@each_case(
    ("text", "expected"),
    [
        ("", "plan.yaml: the file is empty"),
        ("# only a comment\n", "plan.yaml: the file is empty"),
        ("- a\n", "plan.yaml:1: a plan is an object with title and tasks"),
        ("just words\n", "plan.yaml:1: a plan is an object"),
        (b"title: \xff\xfe\n", "plan.yaml:1: this is not UTF-8"),
        ("title: t\ntasks:\n\t- id: a\n", "(indent with spaces, not with tabs)"),
        ("title: [\n", "this is not YAML"),
        ("title: t\n---\ntitle: t\n", "expected a single document"),
        ("title: t\ntitle: t\n" + TASK, 'plan.yaml:2: the key "title" is here a second time'),
        ("title: !!python/name:os.system x\n" + TASK, "plan.yaml:1: the tag"),
        ("title: !own x\n" + TASK, "plan.yaml:1: the tag !own is not allowed"),
        ("title: !!binary aGk=\n" + TASK, "is not allowed for this value"),
        ("title: !!int words\n" + TASK, "plan.yaml:1: not a number: words"),
        ("title: !!bool words\n" + TASK, "is not allowed for this value"),
        ("title: !!set {a}\n" + TASK, "is not allowed here"),
        ("title: a\x1bb\n" + TASK, "plan.yaml:1: this is not YAML: a control character is not allowed"),
        ("title: t\n? [a]\n: b\n" + TASK, "plan.yaml:2: a key must be a text"),
        ("base: &b {id: a}\ntasks: [{<<: *b, title: A}]", "plan.yaml:2: merging with << is not supported"),
        ('title: "a\\0b"\n' + TASK, "plan.yaml:1: the character NUL"),
        ("title: &a [*a]\n", "plan.yaml:1: nested too deeply"),
        ("[" * 60 + "]" * 60, "plan.yaml:1: nested too deeply"),
        ("- " * 3000, "nested too deeply"),
        (f"title: {'9' * 200}\n" + TASK, "too many digits"),
        (TASK, "plan.yaml:1: title: missing"),
        ("title:\n" + TASK, "plan.yaml:1: title: missing"),
        ('title: " "\n' + TASK, "plan.yaml:1: title: expected a text of 1 to 500 characters"),
        ("title: [a]\n" + TASK, "plan.yaml:1: title: expected a text"),
        ("title: |\n  a\n  b\n" + TASK, "plan.yaml:1: title: must be one line"),
        ("title: t\n", "plan.yaml:1: tasks: missing"),
        ("title: t\ntasks:\n", "plan.yaml:2: tasks: missing"),
        ("title: t\ntasks: []\n", "plan.yaml:2: tasks: empty"),
        ("title: t\ntasks: {a: b}\n", "plan.yaml:2: tasks: expected a list"),
        ("title: t\ntasks: [a]\n", "plan.yaml:2: tasks[0]: expected an object with id and title"),
        (
            "title: t\ntasks:\n  - id: a\n    title: b\n    prove: maybe\n",
            'plan.yaml:5: tasks[0].prove: expected true or false, got "maybe"',
        ),
        (
            "title: t\ntasks:\n  - id: a\n    title: b\n    proof: true\n",
            'plan.yaml:5: tasks[0].proof: unknown key (did you mean "prove"?)',
        ),
        ("title: t\ntask: []\n" + TASK, 'plan.yaml:2: task: unknown key (did you mean "tasks"?)'),
        (
            "title: t\ntasks:\n- id: a\n  titel: A\n",
            'plan.yaml:4: tasks[0].titel: unknown key (did you mean "title"?)',
        ),
        ("title: t\ntasks:\n- title: A\n", "plan.yaml:3: tasks[0].id: missing"),
        ("title: t\ntasks:\n- id: a\n", "plan.yaml:3: tasks[0].title: missing"),
        ("title: t\ntasks:\n- id: true\n  title: A\n", 'tasks[0].id: expected a text: put "true" in quotes'),
        (f"title: t\ntasks:\n- id: {'x' * 129}\n  title: A\n", "tasks[0].id: expected a text of 1 to 128"),
        (
            "title: t\ntasks:\n- {id: a, title: A}\n- {id: a, title: B}\n",
            'plan.yaml:4: tasks[1].id: "a" is already on line 3',
        ),
        (
            "title: t\ntasks:\n- id: a\n  title: A\n  depends_on: [a]\n",
            "plan.yaml:5: tasks[0].depends_on: a task cannot depend on itself",
        ),
        (
            "title: t\ntasks:\n- {id: t1, title: A}\n- id: t2\n  title: B\n  depends_on: [t9]\n",
            'plan.yaml:6: tasks[1].depends_on: unknown task "t9" (did you mean "t2"?)',
        ),
        (
            "title: t\ntasks:\n- {id: a, title: A, depends_on: b}\n- {id: b, title: B, depends_on: a}\n",
            "plan.yaml:3: tasks[0].depends_on: these tasks wait for each other: a -> b -> a",
        ),
        (
            "title: t\ntasks: [{id: a, title: A, depends_on: [[b]]}]",
            "tasks[0].depends_on[0]: expected the id",
        ),
        (
            "title: t\ntasks: [{id: a, title: A, depends_on: {b: c}}]",
            "tasks[0].depends_on[0]: expected the id",
        ),
        (
            "title: t\ntasks: [{id: a, title: A, priority: high}]",
            "tasks[0].priority: expected a whole number",
        ),
        (
            "title: t\ntasks: [{id: a, title: A, max_attempts: 0}]",
            "tasks[0].max_attempts: expected a whole number",
        ),
        ("title: t\ntasks: [{id: a, title: A, agent: a b}]", "tasks[0].agent: expected the name of an agent"),
        ("title: t\ntasks: [{id: a, title: A, model: [x]}]", "tasks[0].model: expected the name of a model"),
        ("title: t\ntasks: [{id: a, title: A, scope: /etc}]", "tasks[0].scope[0]: expected a path relative"),
        (
            "title: t\ntasks: [{id: a, title: A, scope: [a, ../b]}]",
            "tasks[0].scope[1]: expected a path relative",
        ),
        (
            "title: t\ntasks: [{id: a, title: A, criteria: [no, [x]]}]",
            "tasks[0].criteria[1]: expected a text",
        ),
        (
            "title: t\ntasks: [{id: a, title: A, criteria: [true]}]",
            'criteria[0]: expected a text: put "true" in',
        ),
        (
            "title: t\ntasks: [{id: a, title: A, description: {x: y}}]",
            "tasks[0].description: expected a text",
        ),
        (
            "title: t\ntasks: [{id: a, title: A, acceptance: [{run: x, tmeout: 1}]}]",
            "acceptance[0].tmeout: unknown key",
        ),
        (
            "title: t\ntasks: [{id: a, title: A, acceptance: [{name: x}]}]",
            "tasks[0].acceptance[0].run: missing",
        ),
        ("title: t\ntasks: [{id: a, title: A, acceptance: 3}]", "tasks[0].acceptance[0]: expected a command"),
        (
            "title: t\ngates:\n- make\n- run: x\n  timeout: never\n" + TASK,
            "plan.yaml:5: gates[1].timeout: expected",
        ),
        ("title: t\nsettings: 3\n" + TASK, "plan.yaml:2: settings: expected an object"),
        (
            "title: t\nsettings:\n  limits:\n    hrd: 3\n" + TASK,
            "plan.yaml:4: settings.limits.hrd: unknown setting",
        ),
        (
            "title: t\nsettings:\n  parallel: x\n" + TASK,
            "plan.yaml:3: settings.parallel: expected a whole number",
        ),
        ("title: t\nsettings:\n  home: /x\n" + TASK, "plan.yaml:3: settings.home: this belongs to a machine"),
        ("title: t\nsettings:\n  gates: [x]\n" + TASK, "plan.yaml:3: settings.gates: write gates at the top"),
    ],
)
def test_a_wrong_plan_is_refused_with_the_place(tmp_path: Path, text: str | bytes, expected: str) -> None:
    found = problems(tmp_path, text)
    assert any(expected in problem for problem in found), found
    assert all(problem.startswith("plan.yaml") for problem in found)


@pytest.mark.capability("C004")
@each_case(
    ("text", "expected"),
    [
        ("", "plan.json:1: this is not JSON: a value is expected here"),
        ('{"title": "t",\n"tasks": [}', "plan.json:2: this is not JSON"),
        ('{"title": "t"} x', "something follows the end"),
        ('{"title": "t",\n "title": "t"}', 'plan.json:2: the key "title" is here a second time'),
        ("{title: 1}", "a text in double quotes is expected here"),
        ('{"title": "t"', "plan.json:1: this is not JSON: , or } is expected here"),
        ('{"title": "t\n"}', "plan.json:1: this is not JSON: Invalid control character"),
        ('{"title": "\\ud800"}', "half of a surrogate pair"),
        ('{"title": "\\u0000"}', "the character NUL"),
        ('{"title": yes}', "unknown word yes"),
        ("[" * 100_000, "nested too deeply"),
        ('{"title": "t", "tasks": [\n{"id": "a", "titel": 1}]}', "plan.json:2: tasks[0].titel: unknown key"),
    ],
)
def test_a_wrong_json_plan_is_refused_with_the_place(tmp_path: Path, text: str, expected: str) -> None:
    found = problems(tmp_path, text, "plan.json")
    assert any(expected in problem for problem in found), found


def test_everything_that_is_wrong_is_reported_at_once_from_top_to_end(tmp_path: Path) -> None:
    text = "titel: t\nsettings: {parallel: x}\ntasks:\n- {id: a, titel: A, depends_on: b}\n- 3\n"
    lines = [int(problem.split(":")[1]) for problem in problems(tmp_path, text)]
    assert lines == sorted(lines)
    assert len(lines) == 7


def test_many_problems_are_cut_off_and_counted(tmp_path: Path) -> None:
    text = "title: t\ntasks:\n" + "- {id: a}\n" * 60
    found = problems(tmp_path, text)
    assert len(found) == 51
    assert found[-1] == "and 69 more problems"


def test_a_missing_file_a_folder_and_a_huge_file_are_refused(tmp_path: Path, wording: Wording) -> None:
    def words(path: Path) -> str:
        with pytest.raises(BadPlan) as caught:
            reading.read(YamlSource(), path)
        return str(caught.value)

    wording(words(tmp_path / "none.yaml"))
    wording(words(tmp_path))
    wording(words(tmp_path / "a\0b"))
    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as file:
        file.truncate(6 * 1024 * 1024)
    assert "larger than 5 MB" in words(huge)


def test_a_bomb_of_aliases_is_defused(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for n in range(1, 12):
        bomb += f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n"
    assert any("too many values" in problem for problem in problems(tmp_path, bomb))


def test_a_chain_of_a_thousand_tasks_is_read(tmp_path: Path) -> None:
    tree = {
        "title": "t",
        "tasks": [
            {"id": f"t{n}", "title": "T", "depends_on": [f"t{n - 1}"] if n else []} for n in range(1000)
        ],
    }
    assert len(read(tmp_path, json.dumps(tree), "plan.json").tasks) == 1000


@pytest.mark.capability("C001")
def test_messages_name_the_file_without_the_folders_of_this_machine(tmp_path: Path) -> None:
    assert all(str(tmp_path) not in problem for problem in problems(tmp_path, "title: t\n"))


@pytest.mark.capability("C006")
def test_the_example_in_the_documentation_is_a_plan_and_matches_the_schema(tmp_path: Path) -> None:
    from ruamel.yaml import YAML

    examples = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert examples
    (tmp_path / "unseen").mkdir()
    (tmp_path / "unseen" / "test_double.py").write_text("def test_more(): ...\n")
    for example in [*examples, GOOD]:
        assert read(tmp_path, example).tasks
        tree = YAML(typ="safe", pure=True).load(example.replace("2024-01-01", "x"))
        jsonschema.validate(tree, plan_schema(), jsonschema.Draft202012Validator)


@each_case(
    "tree",
    [
        {"title": "t"},
        {"title": "t", "tasks": []},
        {"title": "t", "tasks": [{"id": "a"}]},
        {"title": "t", "tasks": [{"id": "a", "title": "A", "prio": 1}]},
        {"title": "t", "tasks": [{"id": "a", "title": "A", "priority": "high"}]},
        {"title": "t", "tasks": [{"id": "a", "title": "A"}], "settings": {"home": "/x"}},
    ],
)
def test_the_schema_refuses_what_the_program_refuses(tmp_path: Path, tree: dict[str, object]) -> None:
    assert problems(tmp_path, json.dumps(tree), "plan.json")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tree, plan_schema(), jsonschema.Draft202012Validator)
