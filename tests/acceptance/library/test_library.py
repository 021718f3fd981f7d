"""Loopwright as a library: the example of the documentation, and what the attributes promise."""

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.cli.program import Program
from tests.acceptance.sandbox import Sandbox, task

from loopwright import Loopwright
from loopwright.core.plans import evaluating
from loopwright.core.values.errors import LoopwrightError, NotFound, UserError
from loopwright.engine.intake import evaluation
from loopwright.services.plans.checking import RunOnBase
from loopwright.services.runs.preparation import Importance, NothingToDo, RunRequest
from loopwright.testing.sample import demo_plan, demo_script, make_sample_repository

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "use-as-a-library.md"


def library(sandbox: Sandbox) -> Loopwright:
    return Loopwright(sandbox.repository, home=sandbox.home, env=sandbox.program.env)


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """A repository whose one task the scripted agent does."""
    made = Sandbox(tmp_path)
    made.play({"one": [[{"write": "one.txt", "text": "right\n"}]]})
    return made


def test_the_example_of_the_documentation_runs(tmp_path: Path) -> None:
    example = re.search(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert example is not None
    make_sample_repository(tmp_path / "shop")
    (tmp_path / "shop" / "plan.yaml").write_text(demo_plan())
    script = tmp_path / "script.json"
    script.write_text(json.dumps(demo_script(pause_s=0)))
    env = {
        **Program(tmp_path).env,
        "LOOPWRIGHT_AGENT": "scripted",
        "LOOPWRIGHT_AGENTS__SCRIPTED__SCRIPT": str(script),
    }
    env.pop("LOOPWRIGHT_HOME", None)
    done = subprocess.run(
        [sys.executable, "-c", example[1]], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "7 tasks, up to" in done.stdout
    assert "the plan is VERIFIED\n" in done.stdout
    assert "the receipt agrees: True\n" in done.stdout
    assert (tmp_path / "loopwright-home" / "loopwright.db").exists()


async def test_a_plan_is_evaluated_once_however_much_is_looked_at(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def counted(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        return evaluating.findings(*arguments, **named)

    monkeypatch.setattr(evaluation, "findings", counted)
    loop = library(sandbox)
    path = sandbox.plan("good", [task("one", "grep -q right one.txt")])
    rested = await loop.plans.run(path)
    assert not isinstance(rested, NothingToDo)
    assert rested.view is not None
    assert rested.view.status == "VERIFIED"
    assert len(calls) == 1
    await loop.plans.check(path, run=RunOnBase.NOTHING)
    assert len(calls) == 2


async def test_a_run_in_steps_is_told_shown_and_decided_about(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    before = dict(os.environ)
    loop = library(sandbox)
    path = sandbox.plan("good", [task("one", "grep -q right one.txt")])
    told: list[tuple[Importance, str]] = []
    prepared = await loop.plans.prepare(
        RunRequest(plan=path, flags={"parallel": 1}, check_base=True), tell=lambda *one: told.append(one)
    )
    assert not isinstance(prepared, NothingToDo)
    async with prepared:
        submitted = await loop.plans.submit(prepared)
    assert submitted.standing == "new"
    assert any(importance is Importance.PROGRESS for importance, _ in told)
    paused = await loop.control.pause()
    assert paused.plan.id == submitted.plan.id
    assert (await loop.plans.get()).view.loop_state == "PAUSED"
    assert (await loop.control.resume()).needs_worker
    rested = await loop.plans.drive(submitted.plan.id)
    assert rested.view is not None
    assert rested.view.status == "VERIFIED"
    assert [one.id for one in await loop.plans.list()] == [submitted.plan.id]
    assert await loop.questions.list() == ()
    [project] = await loop.projects.list()
    assert (Path(project.project.path), project.plans) == (sandbox.repository, 1)
    assert dict(os.environ) == before


async def test_an_error_has_a_code_and_a_hint(sandbox: Sandbox) -> None:
    loop = library(sandbox)
    with pytest.raises(LoopwrightError) as nothing:
        await loop.plans.get()
    assert nothing.value.code == "no_home"
    bad = sandbox.plan("bad", [task("one", "true")])
    with pytest.raises(UserError) as refused:
        await loop.plans.run(bad)
    assert refused.value.code == "plan_objected"
    assert refused.value.hint
    assert not sandbox.home.joinpath("loopwright.db").exists(), "a refused plan makes no home"


def test_the_page_lists_every_method_of_every_attribute(sandbox: Sandbox) -> None:
    loop = library(sandbox)
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("| attribute |") : text.index("A plan, task or run is named")]
    listed = {}
    for row in table.splitlines()[2:]:
        if row.startswith("|"):
            (noun,), offered = (re.findall(r"`(\w+)`", cell) for cell in row.strip("|").split("|"))
            listed[noun] = set(offered)
    nouns = {name: one for name, one in vars(loop).items() if not name.startswith("_")}
    assert listed == {
        name: {one for one in dir(noun) if not one.startswith("_")} for name, noun in nouns.items()
    }


def test_every_method_has_types_and_a_docstring(sandbox: Sandbox) -> None:
    for noun in (one for name, one in vars(library(sandbox)).items() if not name.startswith("_")):
        for name in (one for one in dir(noun) if not one.startswith("_")):
            method = getattr(noun, name)
            assert method.__doc__, name
            signature = inspect.signature(method)
            assert signature.return_annotation is not inspect.Signature.empty, name
            assert all(one.annotation is not one.empty for one in signature.parameters.values()), name


async def test_a_finished_plan_is_read_through_every_noun(sandbox: Sandbox) -> None:
    loop = library(sandbox)
    path = sandbox.plan("good", [task("one", "grep -q right one.txt")])
    rested = await loop.plans.run(path)
    assert not isinstance(rested, NothingToDo)
    plan = rested.plan_id
    seen = await loop.plans.get(plan)
    assert (seen.view.status, seen.at_rest, seen.worked) == ("VERIFIED", True, False)
    overview = await loop.plans.overview(plan)
    assert overview.row is not None
    assert overview.row.verdict is not None
    events = await loop.plans.events(plan)
    numbers = [one.n for one in events]
    assert numbers == sorted(numbers)
    assert await loop.plans.events(plan, after=numbers[2], limit=2) == events[3:5]
    followed = [one async for one in loop.plans.follow(plan, after=numbers[-2])]
    assert [getattr(one, "n", "end") for one in followed] == [numbers[-1], "end"]
    assert any("merge" in step.command for step in await loop.plans.next_steps(plan))
    assert "+right" in await loop.plans.diff(plan)
    [one] = await loop.tasks.list(plan)
    assert (await loop.tasks.get(one.id)).detail.attempts
    landed = (await loop.tasks.changes(one.id))[0]
    assert landed is not None
    assert landed.files == ("one.txt",)
    runs = await loop.runs.list(plan)
    agents = [run for run in runs if run.agent]
    assert (await loop.runs.get(agents[0].run_id)).agent == agents[0].agent
    assert len(await loop.runs.output(agents[0].run_id)) > 2
    heard = [part async for part in loop.runs.follow_output(agents[0].run_id)]
    assert heard == list(await loop.runs.output(agents[0].run_id))
    assert (await loop.receipts.show(plan)).receipt.outcome == "verified"
    assert (await loop.audit.coverage(plan)).is_complete
    [loop_row] = await loop.projects.loops()
    assert (loop_row.loop.plan_id, loop_row.plans) == (plan, 1)
    shown = {one.key: one for one in (await loop.settings.show()).settings}
    assert shown["agent"].origin
    assert (await loop.settings.check()).set_by
    assert (await loop.settings.schema("plan"))["type"] == "object"
    assert isinstance(await loop.settings.gates(), tuple)
    assert {one.agent for one in (await loop.quota.list()).used} == {agents[0].agent}
    assert (await loop.metrics.show(plan)).together.completed == 1
    await loop.work(until_idle=True)
    with pytest.raises(NotFound) as wrong:
        await loop.runs.get(plan)
    assert wrong.value.code == "run_expected"
    with pytest.raises(NotFound) as wrong:
        await loop.tasks.get(plan)
    assert wrong.value.code == "task_expected"
    with pytest.raises(NotFound) as wrong:
        await loop.tasks.list(one.id)
    assert wrong.value.code == "plan_expected"


async def test_a_check_and_a_run_say_that_agents_cannot_read_the_specifications(sandbox: Sandbox) -> None:
    config = {"name": "path", "specs_dir": "specs", "test_state_file": "test-state.json"}
    tests = {
        "loopName": "path",
        "lastUpdated": "2026-01-07T09:15:00Z",
        "summary": {"total": 1, "passed": 0, "failed": 0, "blocked": 0, "pending": 1},
        "tests": [
            {"id": "A-B-001", "category": "a", "status": "pending", "passCriteria": ["`test -s made`"]}
        ],
    }
    (sandbox.repository / "config.json").write_text(json.dumps(config))
    (sandbox.repository / "test-state.json").write_text(json.dumps(tests))
    loop, told = library(sandbox), "config.json: specs_dir: there is no folder specs"
    report = await loop.plans.check("config.json", run=RunOnBase.NOTHING)
    assert any(note.startswith(told) for note in report.notes)
    notes: list[str] = []
    prepared = await loop.plans.prepare("config.json", tell=lambda _, text: notes.append(text))
    assert not isinstance(prepared, NothingToDo)
    await prepared.close()
    assert any(note.startswith(told) for note in notes)
