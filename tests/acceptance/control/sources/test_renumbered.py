"""A person renumbers a list while its plan runs, and names its file where the folder was named before."""

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.waiting import eventually

from loopwright.core.rows.model import Loop, Plan, Task

SETTINGS = '[[gates]]\nname = "greeting"\nrun = "grep -q hello greet.txt"\n'
TASKS = "# Implementation Plan\n\n- [ ] 1. Write one\n- [ ] 2. Write two\n"


@pytest.mark.more
@pytest.mark.trap("verified too early")
def test_an_inserted_item_is_done_and_the_file_is_the_same_source_as_its_folder(shop: Workshop) -> None:
    spec = shop.repository / ".kiro/specs/login"
    spec.mkdir(parents=True)
    (spec / "tasks.md").write_text(TASKS)
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    shop.git("add", "-A")
    shop.git("commit", "-qm", "the work")
    gate = shop.gate("gate")
    make = {key: {"write": f"made-{key}", "text": "x\n"} for key in ("1", "2", "inserted")}
    shop.play({"1": [[{"run": gate.shell}, make["1"]], [make["inserted"]]], "2": [[make["2"]]]})
    run = shop.start("run", ".kiro/specs/login", "--allow-unverified")
    gate.until_reached()
    # The first is at work: it becomes the third, and the second stays where it is.
    (spec / "tasks.md").write_text(
        "# Implementation Plan\n\n- [ ] 1. Inserted later\n- [ ] 2. Write two\n- [ ] 3. Write one\n"
    )
    eventually(lambda: "3" in {task.key for task in shop.rows(Task)}, timeout=30)
    gate.let_go()
    assert run.end() == 0, run.out
    tasks = {task.key: task for task in shop.rows(Task)}
    assert {key: task.title for key, task in tasks.items()} == {
        "1": "Inserted later",
        "2": "Write two",
        "3": "Write one",
    }
    assert all(task.landed_sha for task in tasks.values())
    plan = shop.row(Plan)
    shop.git("checkout", "-q", "--", ".")
    shop.git("merge", "-q", "--ff-only", plan.branch)
    assert (spec / "tasks.md").read_text().count("- [x]") == 3
    again = shop("run", ".kiro/specs/login/tasks.md", "--allow-unverified", timeout=100)
    assert (again.code, len(shop.rows(Plan)), len(shop.rows(Loop))) == (0, 1, 1), again.out + again.err
