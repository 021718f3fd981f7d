"""Held-out checks in a plan file: what is read, and what is refused."""

import hashlib
import json
from pathlib import Path

import jsonschema
import pytest
from tests.cases import each_case

from loopwright.adapters.sources.spec.plan_format import plan_schema
from loopwright.adapters.sources.spec.yaml_plan import YamlSource
from loopwright.adapters.sources.text import reading
from loopwright.core.values.errors import BadPlan
from loopwright.core.values.policy import GateCommand, HeldFile, HeldOut
from loopwright.ports import PlannedWork

TEXT = "assert True\n"
SHA = hashlib.sha256(TEXT.encode()).hexdigest()


def read(folder: Path, *held_out: object, **more: object) -> PlannedWork:
    """Read a plan of one task, beside which the file `unseen/check.py` lies."""
    (folder / "unseen").mkdir(exist_ok=True)
    (folder / "unseen" / "check.py").write_text(TEXT)
    task = {"id": "a", "title": "A", "acceptance": "make test", "held_out": list(held_out), **more}
    document = {"title": "It", "tasks": [{key: value for key, value in task.items() if value is not None}]}
    path = folder / "plan.json"
    path.write_text(json.dumps(document))
    return reading.read(YamlSource(), path)


def test_a_check_is_read_with_its_files_and_its_name_says_which_they_are(tmp_path: Path) -> None:
    work = read(
        tmp_path, {"run": "python unseen/check.py", "files": "unseen/check.py", "hint": "All numbers."}
    )
    ((held,),) = [task.held_out for task in work.tasks]
    assert held == HeldOut(
        check=GateCommand(name=held.check.name, command="python unseen/check.py"),
        files=(HeldFile(path="unseen/check.py", sha256=SHA),),
        hint="All numbers.",
    )
    assert held.check.name.startswith("held-out 1 [")
    assert work.held_files == {SHA: TEXT.encode()}
    jsonschema.validate(json.loads((tmp_path / "plan.json").read_text()), plan_schema())


@each_case("held_out", ["python -c 'assert True'", ["python -c 'assert True'"]])
def test_one_line_is_enough(tmp_path: Path, held_out: object) -> None:
    work = read(tmp_path, held_out=held_out)
    assert work.tasks[0].held_out == (
        HeldOut(check=GateCommand(name="held-out 1", command="python -c 'assert True'")),
    )
    jsonschema.validate(json.loads((tmp_path / "plan.json").read_text()), plan_schema())


def test_another_content_of_a_file_is_another_check_and_another_plan(tmp_path: Path) -> None:
    first = read(tmp_path, {"name": "x", "run": "make x", "files": ["unseen/check.py"]})
    (tmp_path / "unseen" / "check.py").write_text("assert False\n")
    second = reading.read(YamlSource(), tmp_path / "plan.json")
    assert first.sha256 != second.sha256
    names = [work.tasks[0].held_out[0].check.name for work in (first, second)]
    assert names[0] != names[1]
    assert {name.partition(" [")[0] for name in names} == {"x"}


@each_case(
    ("held_out", "more", "words"),
    [
        ({"run": "x", "files": "unseen/none.py"}, {}, "unseen/none.py cannot be read beside the plan file"),
        ({"run": "x", "files": "../check.py"}, {}, "a path relative to the plan file, without .."),
        ({"run": "x"}, {"acceptance": None}, "needs `acceptance` beside it"),
        ({"run": " "}, {}, "a shell command"),
        (" ", {}, "a shell command"),
        (7, {}, "expected a command, or a table with run"),
        ({"run": "x", "hint": "h" * 2000 + "h"}, {}, "at most 2000 characters"),
    ],
)
def test_what_cannot_work_is_refused_with_its_place(
    tmp_path: Path, held_out: object, more: dict[str, object], words: str
) -> None:
    with pytest.raises(BadPlan) as wrong:
        read(tmp_path, held_out, **more)
    (problem,) = wrong.value.problems
    assert words in problem
    assert "tasks[0].held_out" in problem
