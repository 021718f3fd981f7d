"""Each form of work, as people have it: it runs, is killed in the middle, goes on, and is told how it ended.

`UPDATE_SAMPLES=1` writes what came out beside each sample; look at it before it is taken.
"""

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.acceptance.control.workshop import Workshop, kill
from tests.fakes import fake_bd
from tests.waiting import eventually

from loopwright.adapters.sources.schemas import source_schemas
from loopwright.core.rows.model import Plan

SAMPLES = Path(__file__).parents[1] / "samples"
SETTINGS = '[[gates]]\nname = "greeting"\nrun = "grep -q hello greet.txt"\n'
CLAIMED = '"assignee":"loopwright"'
SCHEMAS = {
    "feature_list.json": "feature_list",
    "metadata.json": "track",
    "roadmap-view.json": "roadmap_view",
    "state.json": "orchestrator_state",
}
"""What is published about the files that are written; the sample of a `test-state.json` is one of the older shape."""
_DAY = re.compile(r"(?m)^completed: 20\d\d-\d\d-\d\d$")
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A repository with work in one form."""

    kind: str
    place: str
    first: str
    """The task that is at work when everything is killed."""
    then: tuple[str, ...]
    """The others, in the order in which they are done."""
    proves: bool = True
    """Whether the form has a place for commands that prove a criterion."""
    code: int = 0
    """How the program ends."""
    name: str = ""
    """Of the sample, where there are several of a kind."""
    tracker: bool = False
    """Whether the tracker's own program is there."""

    @property
    def folder(self) -> Path:
        """Where the sample is."""
        return SAMPLES / (self.name or self.kind)


EVERY = (
    Sample(kind="feature_list", place="feature_list.json", first="f1", then=("f2",)),
    Sample(
        kind="feature_list",
        name="feature_list-published",
        place="feature_list.json",
        first="cart-keeps-lines",
        then=("cart-is-paid",),
    ),
    Sample(kind="prd_json", place="prd.json", first="US-001", then=("US-002",)),
    Sample(kind="task_master", place=".taskmaster/tasks/tasks.json", first="2", then=("3",)),
    Sample(kind="bmad", place="docs/stories/1.2.cart.story.md", first="2", then=("3",)),
    Sample(
        kind="bmad",
        name="bmad-sprint",
        place="docs/stories/sprint-status.yaml",
        first="1-2-cart",
        then=("1-3-checkout",),
        proves=False,
    ),
    Sample(kind="plan_md", place="conductor/tracks/greet_20261116", first="1.1", then=("2.1",)),
    Sample(kind="test_state", place="coding-loops/path", first="CP-API-001", then=("CP-API-002",)),
    Sample(kind="orchestrator", place="orchestrator", first="milestone-1", then=("milestone-2",)),
    Sample(
        kind="thoughts",
        place="thoughts/shared/plans",
        first="2026-01-05-sign-up-01-form",
        then=("2026-01-05-sign-up-02-client",),
    ),
    Sample(kind="beads", place=".beads", first="bd-a1", then=("bd-a2",)),
    Sample(kind="beads", name="bd", place=".beads", first="bd-a1", then=("bd-a2",), tracker=True),
    # A bug, and neither a command nor a test shows what was broken.
    Sample(kind="issues_json", place="export.json", first="#9", then=("#12",), proves=False, code=4),
    Sample(kind="spec", place="work.yaml", first="one", then=("two",)),
    Sample(kind="prompt_md", place="PROMPT.md", first="prompt", then=("prompt-2",)),
    Sample(kind="speckit", place="specs/001-greet", first="T002", then=("T003",)),
    Sample(kind="openspec", place="openspec/changes/add-greeting", first="1.2", then=("2.1",)),
    Sample(kind="kiro", place=".kiro/specs/greeting", first="2", then=("3",)),
    Sample(
        kind="execplan", place="docs/exec-plans/active/greeting.md", first="say-hello", then=("say-goodbye",)
    ),
    Sample(kind="superpowers", place="docs/superpowers/plans/2026-01-05-greeting.md", first="1", then=("2",)),
    Sample(kind="gsd", place=".planning/phases/01-greeting/01-01-PLAN.md", first="1", then=("2",)),
    Sample(kind="backlog_md", place="backlog", first="task-1", then=("task-2",)),
    Sample(kind="todo_md", place="TODO.md", first="say-hello", then=("say-goodbye",)),
)


USUAL = {"plan_md", "bd"}
"""Those that `make test` shows: a folder, a program that others write to as well, a round, and a tracker."""


def plain(text: str, shop: Workshop, plan: Plan) -> str:
    """Return what was written, without what is another each time."""
    for n, key in enumerate(shop.started_keys()):
        sha = shop.task(key).landed_sha or "-"
        text = re.sub(rf"\b{sha[:7]}[0-9a-f]*\b", f"COMMIT-{n}", text)
    # What is done in an instant may be closed before it could be claimed.
    return (
        _DAY.sub("completed: DAY", _TIME.sub("TIME", text))
        .replace(plan.id, "PLAN")
        .replace(f",{CLAIMED}", "")
    )


def health(shop: Workshop) -> tuple[Any, ...]:
    """Return what the sign of life says that a source of tests asked for; it is no part of the work."""
    path = shop.repository / "coding-loops/path/specs/health.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    return tuple(found.get(key) for key in ("status", "current_test", "pid", "progress"))


@pytest.mark.capability("C014")
@pytest.mark.capability("C053")
@pytest.mark.parametrize(
    "sample",
    [
        pytest.param(one, id=name, marks=[] if name in USUAL else [pytest.mark.more])
        for one in EVERY
        for name in [one.name or one.kind]
    ],
)
def test_it_runs_is_killed_goes_on_and_is_told_how_it_ended(shop: Workshop, sample: Sample) -> None:
    given = sample.folder / "given"
    if sample.tracker:
        # It keeps its issues to itself, as newer ones do.
        (shop.repository / ".git/info/exclude").write_text(".beads/\n")
        shop.program.env["PATH"] = f"{fake_bd.install(shop.place / 'bin').parent}:{shop.program.env['PATH']}"
    shutil.copytree(given, shop.repository, dirs_exist_ok=True)
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    shop.git("add", "-A")
    shop.git("commit", "-qm", "the work")
    gate = shop.gate("gate")
    made = {key: [[{"write": f"made-{key}", "text": "x\n"}]] for key in sample.then}
    shop.play(
        {sample.first: [[{"run": gate.shell}, {"write": f"made-{sample.first}", "text": "x\n"}]], **made}
    )
    run = shop.start("run", sample.place)
    gate.until_reached()
    if sample.kind == "test_state":
        eventually(lambda: health(shop)[:3] == ("running", sample.first, run.process.pid), timeout=30)
    if sample.tracker:
        kept = shop.repository / ".beads/tracker.jsonl"
        eventually(lambda: kept.read_text().count(CLAIMED) == 1, timeout=30)
    kill(run)
    gate.let_go()
    said = shop("run", sample.place, timeout=100)
    assert said.code == sample.code, said.out + said.err
    if sample.kind == "test_state":
        assert health(shop) == ("stopped", None, None, {"passed": 3, "total": 3}), (
            "in the checkout, not merged"
        )
    plan = shop.row(Plan)
    assert (plan.status, shop.started_keys()) == ("VERIFIED", [sample.first, *sample.then])
    shop.git("merge", "-q", "--ff-only", plan.branch)
    wanted = sample.folder / "told"
    folders = (given, wanted)
    names = sorted({path.relative_to(one) for one in folders for path in one.rglob("*") if path.is_file()})
    for name in names:
        content = (shop.repository / name).read_text()
        if name.name in SCHEMAS and sample.kind != "task_master":
            jsonschema.validate(json.loads(content), source_schemas()[SCHEMAS[name.name]])
        found = plain(content, shop, plan)
        if os.environ.get("UPDATE_SAMPLES"):
            (wanted / name).parent.mkdir(parents=True, exist_ok=True)
            (wanted / name).write_text(found)
        assert found == (wanted / name).read_text(), name
    if sample.kind == "issues_json":
        # A new export, before anybody closed the issues on the forge.
        shutil.copytree(given, shop.repository, dirs_exist_ok=True)
    again = shop("run", sample.place, timeout=100)
    assert (again.code, len(shop.rows(Plan))) == (sample.code, 1), "nothing is done twice"
    covered = shop("plan", "coverage", sample.place, "--json").document["tasks"]
    of_plan = [task for task in covered if task["plan_id"] == plan.id]
    further = () if sample.kind == "prompt_md" else sample.then  # further rounds are no items of the file
    assert {task["key"] for task in of_plan} == {sample.first, *further}
    if sample.proves:
        assert "proven" in {one["standing"] for task in of_plan for one in task["criteria"]}
