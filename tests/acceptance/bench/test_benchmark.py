"""The adapter for public benchmarks: task folders in, predictions and results out, with nothing that gives it away."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench.benchmark import BadTask, read
from tests.acceptance.cli.program import Program, git, repository
from tests.cases import each_case

ROOT = Path(__file__).resolve().parents[3]
SECRET = "what-grades-it"
SOLVED = "grep -q 'a + b' calc.py"


def bench(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = Program(place).env | {
        "LOOPWRIGHT_AGENT": "scripted",
        "LOOPWRIGHT_AGENTS__SCRIPTED__SCRIPT": str(place / "script.json"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
    }
    command = [sys.executable, "-m", "bench.benchmark", str(place / "tasks"), "--out", str(place / "out")]
    return subprocess.run(
        [*command, *arguments], cwd=place, env=env, capture_output=True, text=True, timeout=200
    )


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_task_folders_become_predictions_and_results_and_are_not_run_twice(tmp_path: Path) -> None:
    calc = tmp_path / "calc"
    repository(calc, {"calc.py": "def add(a, b):\n    return a - b\n"})
    base = git(calc, "rev-parse", "HEAD").strip()
    (calc / "calc.py").write_text("the solution\n")
    git(calc, "commit", "-qam", "later")
    later = git(calc, "rev-parse", "HEAD").strip()
    hidden = {"patch": SECRET, "test_patch": SECRET, "FAIL_TO_PASS": [SECRET], "hints_text": SECRET}
    shared = {"repo": "../../calc", "base_commit": base, "test_command": "test -s calc.py", **hidden}
    for name, check in (("good", SOLVED), ("bad", "false"), ("blind", None)):
        folder = tmp_path / "tasks" / name
        folder.mkdir(parents=True)
        said = {**shared, "instance_id": f"calc__{name}", "acceptance": [check] if check else []}
        if name == "blind":
            del said["test_command"]
        (folder / "task.json").write_text(json.dumps(said))
        (folder / "problem.md").write_text("add() subtracts\n\nMake it add.\n")
    broken = tmp_path / "tasks" / "broken"
    broken.mkdir()
    (broken / "task.json").write_text("{}")
    solution = {"write": "calc.py", "text": "def add(a, b):\n    return a + b\n"}
    cost = {"usage": {"input_tokens": 10, "output_tokens": 5, "cost_micros": 9000}}
    wrong = {"write": "calc.py", "text": "wrong\n"}
    (tmp_path / "script.json").write_text(json.dumps({"tasks": {"solve": [[wrong, cost], [solution, cost]]}}))

    said = bench(tmp_path, "--name", "loopwright-scripted", "--set", "max_attempts=2")
    assert said.returncode == 1, said.stdout + said.stderr
    assert "broken/task.json is not a task" in said.stderr

    out = tmp_path / "out"
    results = {one["instance_id"]: one for one in lines(out / "results.jsonl")}
    assert {one: results[one]["outcome"] for one in results} == {
        "calc__bad": "needs_human",
        "calc__blind": "unverified",
        "calc__good": "verified",
    }
    assert (results["calc__good"]["attempts"], results["calc__good"]["cost_micros"]) == (2, 18_000)
    predictions = {one["instance_id"]: one for one in lines(out / "predictions.jsonl")}
    assert set(predictions) == set(results)
    assert {tuple(sorted(one)) for one in predictions.values()} == {
        ("instance_id", "model_name_or_path", "model_patch")
    }
    assert predictions["calc__bad"]["model_patch"] == ""
    assert "+wrong" in predictions["calc__blind"]["model_patch"]
    git(calc, "checkout", "-q", base)
    patch = predictions["calc__good"]["model_patch"]
    subprocess.run(["git", "apply"], cwd=calc, input=patch, text=True, check=True)
    assert "a + b" in (calc / "calc.py").read_text()

    # Neither what grades a task nor what came after its base commit was anywhere near an agent.
    found = subprocess.run(["grep", "-rl", SECRET, str(out)], capture_output=True, text=True)
    assert found.stdout == ""
    known = subprocess.run(["git", "-C", str(out / "repositories/calc__good"), "cat-file", "-e", later])
    assert known.returncode != 0

    before = (out / "results.jsonl").read_bytes()
    again = bench(tmp_path)
    assert (again.returncode, again.stdout) == (1, "")
    assert (out / "results.jsonl").read_bytes() == before


@each_case("changes", [{"instance_id": "../x"}, {"problem_statement": " "}, {"base_commit": ...}])
def test_a_task_that_cannot_be_run_says_why(changes: dict[str, Any], tmp_path: Path) -> None:
    task = {"instance_id": "x", "repo": "r", "base_commit": "c", "problem_statement": "p", **changes}
    (tmp_path / "task.json").write_text(json.dumps({key: one for key, one in task.items() if one is not ...}))
    with pytest.raises(BadTask, match=re.escape("task.json")):
        read(tmp_path)
