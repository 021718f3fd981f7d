"""Loopwright as a library: the example of the documentation, and what the attributes promise."""

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
from loopwright.core.values.errors import LoopwrightError, UserError
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
    assert "the plan is VERIFIED\nthe receipt agrees: True\n" in done.stdout
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
    rested = await loop.runs.run(path)
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
    prepared = await loop.runs.prepare(
        RunRequest(plan=path, flags={"parallel": 1}, check_base=True), tell=lambda *one: told.append(one)
    )
    assert not isinstance(prepared, NothingToDo)
    async with prepared:
        submitted = await loop.runs.submit(prepared)
    assert submitted.standing == "new"
    assert any(importance is Importance.PROGRESS for importance, _ in told)
    paused = await loop.control.pause()
    assert paused.plan.id == submitted.plan.id
    assert (await loop.runs.show()).loop_state == "PAUSED"
    assert (await loop.control.resume()).needs_worker
    rested = await loop.runs.drive(submitted.plan.id)
    assert rested.view is not None
    assert rested.view.status == "VERIFIED"
    assert [one.id for one in await loop.runs.list()] == [submitted.plan.id]
    assert await loop.questions.list_questions() == ()
    [project] = await loop.projects.list_projects()
    assert (Path(project.project.path), project.plans) == (sandbox.repository, 1)
    assert dict(os.environ) == before


async def test_an_error_has_a_code_and_a_hint(sandbox: Sandbox) -> None:
    loop = library(sandbox)
    with pytest.raises(LoopwrightError) as nothing:
        await loop.runs.show()
    assert nothing.value.code == "no_home"
    bad = sandbox.plan("bad", [task("one", "true")])
    with pytest.raises(UserError) as refused:
        await loop.runs.run(bad)
    assert refused.value.code == "plan_objected"
    assert refused.value.hint
    assert not sandbox.home.joinpath("loopwright.db").exists(), "a refused plan makes no home"


def test_an_attribute_names_what_it_offers(sandbox: Sandbox) -> None:
    loop = library(sandbox)
    assert {"pause", "resume", "accept", "take_over"} <= set(dir(loop.control))
    assert loop.control.pause.__doc__
    with pytest.raises(AttributeError, match=r"there are: .*pause"):
        loop.control.explode  # noqa: B018 - that it raises is the point


def test_every_attribute_of_the_page_offers_something(sandbox: Sandbox) -> None:
    loop = library(sandbox)
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("| attribute |") : text.index("For more than a path")]
    for row in table.splitlines()[2:]:
        if not row.startswith("|"):
            continue
        nouns, offered = (re.findall(r"`(\w+)`", cell) for cell in row.strip("|").split("|"))
        for noun in nouns:
            assert set(offered) <= set(dir(getattr(loop, noun))), noun
            assert [one for one in dir(getattr(loop, noun)) if not one.startswith("_")], noun


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
    prepared = await loop.runs.prepare("config.json", tell=lambda _, text: notes.append(text))
    assert not isinstance(prepared, NothingToDo)
    await prepared.close()
    assert any(note.startswith(told) for note in notes)
