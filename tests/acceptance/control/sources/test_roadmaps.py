"""A roadmap that another controller left behind: what is said of it before it runs, and what its state says after."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.control.workshop import Workshop

from loopwright.core.rows.model import Plan

SAMPLE = Path(__file__).parents[1] / "samples/orchestrator/given"
SETTINGS = '[[gates]]\nname = "greeting"\nrun = "grep -q hello greet.txt"\n'


def prepared(shop: Workshop, **state: Any) -> Path:
    """Commit the sample with this in its state; return the file with the state."""
    shutil.copytree(SAMPLE, shop.repository, dirs_exist_ok=True)
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    path = shop.repository / "orchestrator/state.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | state, indent=2))
    shop.git("add", "-A")
    shop.git("commit", "-qm", "the work")
    return path


def said_in(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.capability("C022")
def test_a_blocked_controller_goes_on_and_is_not_done_over_its_error(shop: Workshop) -> None:
    error = {"controller": "planner failed"}
    path = prepared(shop, controller_stage="blocked", resume_errors=error, base_branch="nosuch")
    keys = ("milestone-1", "milestone-2")
    shop.play({key: [[{"write": f"made-{key}", "text": "x\n"}]] for key in keys})
    said = shop("run", "orchestrator", timeout=100)
    assert said.code == 3, said.out + said.err
    words = said_in(said.out)
    assert "VERIFIED 2/2 tasks" in words
    assert "note: orchestrator: Loopwright resumes what was begun: milestone-1, milestone-2" in words
    assert "note: orchestrator: not finished: controller: planner failed" in words
    assert "its source names the base branch nosuch, and there is none here: it starts from trunk" in words
    shop.git("merge", "-q", "--ff-only", shop.row(Plan).branch)
    told = json.loads(path.read_text())
    assert (told["controller_stage"], told["resume_errors"]) == ("dispatch-rounds", error)
    again = shop("run", "orchestrator", "--json").document
    assert (again["exit_code"], again["plan"]["news"]["open_ends"]) == (3, ["controller: planner failed"])
    path.write_text(json.dumps(told | {"roadmap_update": {"reason": "split"}, "resume_errors": {}}))
    left = shop("status", "--exit-code")
    assert left.code == 3
    assert "not finished: orchestrator: a roadmap update is under way" in said_in(left.out)
    path.write_text(json.dumps(told | {"resume_errors": {}}))
    assert shop("run", "orchestrator").code == 0


def test_a_roadmap_that_nobody_began_says_so_by_saying_nothing_and_names_another_base(shop: Workshop) -> None:
    prepared(shop, base_branch="develop")
    shop.git("branch", "develop")
    checked = said_in(shop("plan", "check", "orchestrator").out)
    assert "base branch" not in checked, "the same commit under another name"
    assert "resumes what was begun" not in checked
    shop.git("commit", "-q", "--allow-empty", "-m", "later")
    checked = said_in(shop("plan", "check", "orchestrator").out)
    assert "its source names the base branch develop, and it starts from trunk" in checked
    assert "--base develop starts from there" in checked


@pytest.mark.capability("C022")
def test_a_roadmap_whose_whole_fails_is_not_done_and_says_why_on_its_branch_and_in_place(
    shop: Workshop,
) -> None:
    """The second milestone breaks the first, and nothing is mended; then the same with a roadmap beside git."""
    shop.program.env["LOOPWRIGHT_FIX_CYCLES"] = "0"
    made = {key: [{"write": f"made-{key}", "text": "x\n"}] for key in ("milestone-1", "milestone-2")}
    breaks = [*made["milestone-2"], {"delete": "made-milestone-1"}]
    shop.play({"milestone-1": [made["milestone-1"]], "milestone-2": [breaks]})
    path = prepared(shop)
    said = shop("run", "orchestrator", timeout=100)
    assert said.code == 1, said.out + said.err
    told = json.loads(shop.git("show", f"{shop.row(Plan).branch}:orchestrator/state.json"))
    assert told["controller_stage"] == "dispatch-rounds"
    assert told["resume_errors"]["controller"].startswith("Loopwright: the checks of the whole failed: ")
    assert json.loads(path.read_text())["controller_stage"] == "dispatch-rounds", "nothing is merged yet"
    assert shop("receipt", "verify").code == 0, "what the gate judged is as it was"

    shop.git("rm", "-rq", "--cached", "orchestrator")
    shop.git("commit", "-qm", "beside git")
    (shop.repository / ".git/info/exclude").write_text("orchestrator/\n.loopwright/\n")
    said = shop("run", "orchestrator", "--new", timeout=100)
    assert said.code == 1, said.out + said.err
    told = json.loads(path.read_text())
    assert told["controller_stage"] == "dispatch-rounds"
    assert "the checks of the whole failed" in told["resume_errors"]["controller"]
