"""The sample repository, its plan and its script fit together."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from loopwright.adapters import registry
from loopwright.adapters.sources.text.reading import read
from loopwright.ports import PlannedTask, PlannedWork
from loopwright.testing.sample import EVIDENCE, demo_plan, demo_script, make_sample_repository
from loopwright.testing.scripted import ScriptedAgent, write_script

AGENT = ScriptedAgent()


@pytest.fixture
def plan(tmp_path: Path) -> PlannedWork:
    path = tmp_path / "plan.yaml"
    path.write_text(demo_plan())
    return read(registry.source("yaml"), path)


@pytest.fixture
def script(tmp_path: Path) -> dict[str, str]:
    return {"script": str(write_script(tmp_path / "script.json", demo_script(pause_s=0)))}


@pytest.fixture
def shop(workspace: Path) -> Path:
    make_sample_repository(workspace)
    return workspace


def shell(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", "-c", command], cwd=cwd, capture_output=True, text=True)


def findings(plan: PlannedWork, task: PlannedTask, tree: Path) -> str:
    """Run the task's commands and the plan's, and return what the failing ones printed."""
    done = [shell(gate.command, tree) for gate in (*task.acceptance, *(plan.gates or ()))]
    return "".join(one.stdout + one.stderr + "failed\n" for one in done if one.returncode)


def test_the_repository_has_one_commit_and_a_clean_tree(tmp_path: Path) -> None:
    sha = make_sample_repository(tmp_path / "new")
    assert shell("git rev-list --all", tmp_path / "new").stdout == f"{sha}\n"
    assert shell("git status --porcelain --ignored", tmp_path / "new").stdout == ""


def test_the_plan_has_seven_tasks_of_which_several_can_run_at_once(plan: PlannedWork) -> None:
    assert len(plan.tasks) == 7
    assert sum(not task.depends_on for task in plan.tasks) >= 2
    assert set(demo_script()["tasks"]) == {task.key for task in plan.tasks}


def test_no_task_is_done_before_anybody_worked(plan: PlannedWork, shop: Path) -> None:
    assert plan.gates is not None
    assert shell(plan.gates[0].command, shop).returncode == 0
    for task in plan.tasks:
        assert all(shell(gate.command, shop).returncode != 0 for gate in task.acceptance), task.key
    assert shell("git status --porcelain --ignored", shop).stdout == ""


async def test_who_is_not_told_what_was_found_fails_for_ever(
    run_agent: Any, plan: PlannedWork, script: dict[str, str], shop: Path
) -> None:
    totals = next(task for task in plan.tasks if task.key == "totals")
    for attempt in (1, 2):
        await run_agent(AGENT, f"Task: totals\nAttempt: {attempt}\n", options=script)
        assert EVIDENCE in findings(plan, totals, shop)
