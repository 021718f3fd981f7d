"""Work kept in a file of the user's own form: it runs, is told how it stands, and follows what people change in it."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.control.workshop import Workshop, kill
from tests.waiting import eventually

from loopwright.core.rows.model import Plan, Task


def feature(key: str, *after: str, check: str = "", **more: Any) -> dict[str, Any]:
    return {
        "id": key,
        "name": f"Make {key}",
        "description": f"Do what {key} needs, all of it.",
        "dependencies": list(after),
        "tests": [f"`{check or f'test -s {key}'}`"],
        **more,
    }


def written(path: Path, *features: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"project": "Shop", "own": "kept", "features": features}, indent=3) + "\n")
    return path


def makes(*keys: str) -> dict[str, Any]:
    return {key: [[{"write": key, "text": "done\n"}]] for key in keys}


def passes(text: str) -> dict[str, bool]:
    return {one["id"]: bool(one.get("passes")) for one in json.loads(text)["features"]}


EVALUATED = json.dumps(
    {
        "version": 3,
        "track_id": "t",
        "loop_state": {"checkpoints": {"EVALUATE_PLAN": {"status": "PASSED", "verdict": "PASS"}}},
    }
)
SETTINGS = '[[gates]]\nname = "greeting"\nrun = "grep -q hello greet.txt"\n'


@pytest.mark.capability("C011")
@pytest.mark.capability("C014")
def test_a_source_that_git_tracks_is_told_on_the_plan_branch_by_commits_of_its_own(shop: Workshop) -> None:
    """The agent of `two` ticks its own box, which counts for nothing and does not get into the way."""
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    path = written(shop.repository / "feature_list.json", feature("one"), feature("two", "one"))
    shop.git("add", "-A")
    shop.git("commit", "-qm", "the work")
    tick = {"run": "sed -i 's/Shop/Mine/; s/own/mine/' feature_list.json"}
    shop.play({**makes("one"), "two": [[tick, {"write": "two", "text": "done\n"}]]})
    before = path.read_bytes()
    said = shop.run(path)
    assert said.code == 0, said.out + said.err
    plan = shop.row(Plan)
    assert plan.books == ("feature_list.json",)
    assert path.read_bytes() == before, "the user's copy comes with the merge"
    told = shop.git("show", f"{plan.branch}:feature_list.json")
    assert passes(told) == {"one": True, "two": True}
    assert json.loads(told)["own"] == "kept"
    assert '\n   "project": "Shop"' in told
    subjects = shop.git(
        "log", "--first-parent", "--reverse", "--format=%s", f"{plan.base_sha}..{plan.branch}"
    )
    one, two = (shop.task(key).landed_sha for key in ("one", "two"))
    assert one is not None
    assert two is not None
    assert subjects.splitlines() == [
        "feat(one): Make one",
        f"docs(plan): one is done in {one[:7]}",
        "feat(two): Make two",
        f"docs(plan): two is done in {two[:7]}",
    ]
    assert shop("receipt", "verify", plan.id).code == 0
    (health,) = (shop.repository / ".loopwright/health").glob("*.json")
    seen = json.loads(health.read_text())
    assert (seen["status"], seen["plan_status"], seen["pid"]) == ("COMPLETED", "VERIFIED", None), (
        "nobody drives it"
    )
    assert seen["progress"] == {"passed": 2, "settled": 2, "failed": 0, "total": 2}
    receipt = json.loads((shop.repository / ".loopwright" / "receipts" / f"{plan.id}.json").read_text())
    assert receipt["plan"]["not_ours"] == []
    shop.git("merge", "--ff-only", "-q", plan.branch)
    again = shop.run(path)
    assert (again.code, len(shop.rows(Plan))) == (0, 1), "what is done is not done again"


@pytest.mark.capability("C035")
@pytest.mark.trap("lost edit")
def test_a_source_beside_git_is_told_in_place_and_follows_a_person_through_a_kill(shop: Workshop) -> None:
    """While `slow` is at work: one is added, one ticked, one removed, one reworded; and everything is killed once."""
    path = written(
        shop.place / "feature_list.json",
        feature("slow", priority=1),
        feature("dropped", "slow"),
        feature("ticked", "slow"),
        feature("reworded", "slow"),
    )
    gate = shop.gate("gate")
    shop.play(
        {"slow": [[{"run": gate.shell}, {"write": "slow", "text": "x\n"}]], **makes("added", "reworded")}
    )
    flags = ("--parallel", "1", "--allow-unverified")
    run = shop.start("run", str(path), *flags)
    gate.until_reached()
    eventually(lambda: shop.task("slow").status == "RUNNING")
    kill(run)
    features = {one["id"]: one for one in json.loads(path.read_text())["features"]}
    del features["dropped"]
    features["ticked"]["passes"] = True
    features["reworded"]["description"] = "Quite another text, and a longer one than before."
    features["added"] = feature("added", "reworded")
    written(path, *features.values())
    run = shop.start("run", str(path), *flags)
    eventually(lambda: {task.key for task in shop.rows(Task)} >= {"added"})
    gate.let_go()
    assert run.end() != 2, run.out
    states = {task.key: (task.status.value, task.outcome and task.outcome.value) for task in shop.rows(Task)}
    assert states == {
        "slow": ("COMPLETE", "verified"),
        "dropped": ("CANCELLED", "cancelled"),
        "ticked": ("COMPLETE", "unverified"),
        "reworded": ("COMPLETE", "verified"),
        "added": ("COMPLETE", "verified"),
    }
    assert shop.task("reworded").description.startswith("Quite another text")
    assert passes(path.read_text()) == {"slow": True, "ticked": True, "reworded": True, "added": True}
    assert json.loads(path.read_text())["own"] == "kept"
    assert shop.started() == [("slow", 1), ("reworded", 1), ("added", 1)]
    edited = [event.payload["changes"] for event in shop.events("source_edited")]
    assert sorted(change for some in edited for change in some) == [
        "added was added",
        "dropped was removed",
        "reworded: description",
        "ticked was ticked by hand",
    ]


@pytest.mark.capability("C041")
@pytest.mark.trap("blocked head")
def test_what_its_source_calls_blocked_waits_for_a_person_and_the_rest_goes_on(shop: Workshop) -> None:
    """It lies in the checkout but not in git, and what is written into it there is nobody's stray change."""
    path = written(
        shop.repository / "feature_list.json",
        feature("stuck", blocked=True, blocked_reason="no key"),
        feature("held", needs_review=True),
        feature("free"),
        feature("old", passes=True),
        feature("after-old", "old"),
    )
    gate = shop.gate("gate")
    slowly = {"after-old": [[{"run": gate.shell}, {"write": "after-old", "text": "x\n"}]]}
    shop.play({**makes("stuck", "held", "free"), **slowly})
    run = shop.start("run", str(path), "--allow-unverified")
    gate.until_reached()
    eventually(lambda: passes(path.read_text())["free"], timeout=30)
    gate.let_go()
    assert run.end() == 3, "what is left waits for a person, and nothing failed"
    assert "no key" in run.out
    (said,) = [line for line in run.out.splitlines() if line.startswith("⊘  stuck")]
    assert "blocked" in said.split()
    told = shop("status", "--json").document
    assert (told["plan"]["state"], told["plans"][0]["state"]) == ("NEEDS_YOU", "NEEDS_YOU")
    assert "NEEDS YOU" in shop("receipt", "show").out
    assert {task.key: task.status.value for task in shop.rows(Task)} == {
        "stuck": "ERROR",
        "held": "ERROR",
        "free": "COMPLETE",
        "after-old": "COMPLETE",
    }
    stuck, held, *rest = json.loads(path.read_text())["features"]
    assert (stuck["blocked_reason"], "blocked_at" in stuck) == ("no key", False), "it is theirs, and stays"
    assert (held["needs_review"], "blocked" in held) == (True, False)
    written(path, {**stuck, "blocked": False}, {**held, "needs_review": False}, *rest)
    said = shop.run(path, "--allow-unverified")
    assert "VERIFIED" in said.out, said.out + said.err
    assert not shop.events("checkout_changed")
    assert passes(path.read_text()) == dict.fromkeys(("stuck", "held", "free", "old", "after-old"), True)


@pytest.mark.clause("X08", "X19")
@pytest.mark.capability("C047", "C048")
def test_a_track_has_its_checkpoints_on_the_branch_from_the_start_and_after_each_task(shop: Workshop) -> None:
    """Tasks run in the order of the file; a kill in between costs nothing."""
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    track = shop.repository / "conductor" / "tracks" / "steps_20261116"
    track.mkdir(parents=True)
    box = "- [ ] Task {0}: x\n  - Acceptance: `test -s {0}`\n"
    (track / "plan.md").write_text(f"## One\n\n{box.format(1)}\n## Two\n\n{box.format(2)}{box.format(3)}")
    (track / "metadata.json").write_text(EVALUATED)
    shop.git("add", "-A")
    shop.git("commit", "-qm", "the work")
    gates = {key: shop.gate(f"gate-{key}") for key in ("1", "3")}
    claim = {"claim": "## Summary\n\n**Wrote** <!-- all --> of it.\nMore."}
    held = {key: [[{"run": gate.shell}, *makes(key)[key][0], claim]] for key, gate in gates.items()}
    shop.play({**makes("2"), **held})

    def on_branch(name: str) -> str:
        return shop.git("show", f"{shop.row(Plan).branch}:conductor/tracks/steps_20261116/{name}")

    def standing() -> tuple[Any, ...]:
        state = json.loads(on_branch("metadata.json"))["loop_state"]
        execute = state["checkpoints"]["EXECUTE"]
        told = [execute.get(key) for key in ("tasks_completed", "last_task", "last_commit")]
        return (state["current_step"], state["step_status"], *told)

    def landed(key: str) -> str:
        return (shop.task(key).landed_sha or "-")[:12]

    run = shop.start("run", str(track))
    gates["1"].until_reached()
    assert standing() == ("EXECUTE", "IN_PROGRESS", 0, None, None)
    gates["1"].let_go()
    gates["3"].until_reached()
    eventually(lambda: "- [x] Task 2" in on_branch("plan.md"), timeout=60)
    eventually(lambda: landed("2") != "-", timeout=60)  # the branch has it a moment before the row
    assert standing() == ("EXECUTE", "IN_PROGRESS", 2, "Task 2", landed("2"))
    assert f"- [x] Task 1: x <!-- {landed('1')} -->" in on_branch("plan.md")
    assert "- [ ] Task 3: x\n" in on_branch("plan.md"), "it began after the last landing"
    said = "Wrote <! -- all -- > of it. (its agent's words); changed 1 <!-- loopwright -->"
    assert f"  - Summary: {said}\n" in on_branch("plan.md")
    assert "  - Summary: x; changed 2 <!-- loopwright -->\n" in on_branch("plan.md"), (
        "the title, for want of words"
    )
    kill(run)
    gates["3"].let_go()
    said = shop("run", str(track), timeout=100)
    assert said.code == 0, said.out + said.err
    assert standing() == ("EVALUATE_EXECUTION", "NOT_STARTED", 3, "Task 3", landed("3"))
    commits = json.loads(on_branch("metadata.json"))["loop_state"]["checkpoints"]["EXECUTE"]["commits"]
    assert [(one["task"], one["sha"]) for one in commits] == [(f"Task {n}", landed(n)) for n in "123"]
    branch = shop.row(Plan).branch
    ends = shop.git("log", "--reverse", "--format=-- %s", "--name-only", "--grep=is finished", branch)
    track_files = (
        "\n\nconductor/tracks/steps_20261116/metadata.json\nconductor/tracks/steps_20261116/plan.md\n"
    )
    assert ends == f"-- chore(plan): One is finished{track_files}-- chore(plan): Two is finished{track_files}"
    assert f"<!-- finished: {landed('2')}..{landed('3')} --> <!-- loopwright -->" in on_branch("plan.md")


@pytest.mark.capability("C044", "C047")
def test_a_track_beside_git_tells_of_its_fixes_and_that_it_is_complete(shop: Workshop) -> None:
    """Each task passes its own check, and the second breaks what the first was asked for."""
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    track = shop.repository / "conductor" / "tracks" / "mended_20261116"
    track.mkdir(parents=True)
    one, two = (f"## {name}\n\n- [ ] Task {name}: x\n  - Acceptance: `test -s {name}.txt`\n" for name in "12")
    (track / "plan.md").write_text(f"{one}\n{two}")
    (track / "metadata.json").write_text(EVALUATED)
    gate = shop.gate("gate")
    first, second = ({"write": f"{name}.txt", "text": "right\n"} for name in "12")
    shop.play({"1": [[first]], "2": [[{"delete": "1.txt"}, second]], "fix-1": [[{"run": gate.shell}, first]]})

    def state() -> dict[str, Any]:
        return dict(json.loads((track / "metadata.json").read_text())["loop_state"])

    run = shop.start("run", str(track))
    gate.until_reached()
    eventually(lambda: state()["current_step"] == "FIX", timeout=60)
    now = state()
    assert (now["step_status"], now["fix_cycle_count"], now["max_fix_cycles"]) == ("IN_PROGRESS", 1, 3)
    assert now["checkpoints"]["FIX"]["fixes_remaining"] == ["Fix 1"]
    assert now["checkpoints"]["EXECUTE"]["status"] == "PASSED"
    assert now["checkpoints"]["EVALUATE_EXECUTION"]["verdict"] == "FAIL"
    gate.let_go()
    assert run.end() == 0, run.out
    now = state()
    assert (now["current_step"], now["step_status"]) == ("COMPLETE", "PASSED")
    [applied] = now["checkpoints"]["FIX"]["fixes_applied"]
    assert applied["commit_sha"] == (shop.task("fix-1").landed_sha or "-")[:12]
    assert now["checkpoints"]["EVALUATE_EXECUTION"]["verdict"] == "PASS"
    assert json.loads((track / "metadata.json").read_text())["status"] == "complete"
    assert "## Fix Phase (from Evaluation on " in (track / "plan.md").read_text()


def test_run_writes_the_status_back_when_the_worker_dies_at_the_end_of_the_plan(shop: Workshop) -> None:
    path = written(shop.place / "feature_list.json", feature("one"))
    shop.play(makes("one"))
    shop.program.env["LOOPWRIGHT_FAILPOINT"] = "store.verify.over.after"
    worker = shop.start("worker")
    worker.until("working in")
    del shop.program.env["LOOPWRIGHT_FAILPOINT"]
    run = shop.start("run", str(path))
    assert run.end() == 0, run.out
    assert worker.end() == -signal.SIGKILL
    assert passes(path.read_text()) == {"one": True}


@pytest.mark.clause("X23")
@pytest.mark.capability("C054")
def test_a_track_that_somebody_left_goes_on_behind_its_last_task(shop: Workshop) -> None:
    track = shop.repository / "conductor" / "tracks" / "left_20261116"
    track.mkdir(parents=True)
    lines = [f"- [{mark}] Task {n}: x\n  - Acceptance: `test -s {n}`\n" for n, mark in enumerate("x x ", 1)]
    (track / "plan.md").write_text("".join(lines))
    passed = {"status": "PASSED", "verdict": "PASS"}
    state = {"EVALUATE_PLAN": passed, "EXECUTE": {"status": "IN_PROGRESS", "last_task": "Task 3"}}
    document = {"version": 3, "track_id": "left", "loop_state": {"checkpoints": state}}
    (track / "metadata.json").write_text(json.dumps(document))
    shop.play(makes("1", "2", "3", "4"))
    said = shop("run", str(track), "--allow-unverified", "--parallel", "1", timeout=100)
    assert shop.started_keys() == ["4", "2"], said.out + said.err


@pytest.mark.more
@pytest.mark.capability("C057")
def test_a_person_s_half_done_edit_of_a_tracked_source_holds_nothing_up(shop: Workshop) -> None:
    """It is not JSON for a while: the status is written to the branch without it, and work continues."""
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    path = written(shop.repository / "feature_list.json", feature("one"), feature("two", "one"))
    shop.git("add", "-A")
    shop.git("commit", "-qm", "the work")
    gate = shop.gate("gate")
    shop.play({"one": [[{"run": gate.shell}, {"write": "one", "text": "x\n"}]], **makes("two")})
    run = shop.start("run", str(path))
    gate.until_reached()
    path.write_text(path.read_text().rstrip()[:-1])
    eventually(lambda: shop.events("source_unreadable"))
    gate.let_go()
    assert run.end() == 3, "what is meant by it was not done"
    assert shop.row(Plan).outcome == "verified"
    assert "it cannot be read any more: feature_list.json:" in run.out
    told = shop.git("show", f"{shop.row(Plan).branch}:feature_list.json")
    assert passes(told) == {"one": True, "two": True}


@pytest.mark.capability("C010")
def test_one_file_with_phases_is_a_plan_by_itself_and_is_told_below_each_heading(shop: Workshop) -> None:
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    path = shop.repository / "thoughts" / "shared" / "plans" / "2026-01-06-sign-up.md"
    path.parent.mkdir(parents=True)
    path.write_text(
        "# Sign-up\n\nWhat people need to join.\n\n"
        "## Phase 1: The form\n\nAsk for a name.\n\n### Success Criteria\n\n- [ ] It is there: `test -s form`\n\n"
        "## Phase 2: The mail\n\nSay hello.\n\n### Success Criteria\n\n- [ ] It is there: `test -s mail`\n"
    )
    shop.play({"phase-1": makes("form")["form"], "phase-2": makes("mail")["mail"]})
    said = shop.run(path)
    assert said.code == 0, said.out + said.err
    first, second = shop.task("phase-1"), shop.task("phase-2")
    assert [check.command for check in (*first.acceptance, *second.acceptance)] == [
        "test -s form",
        "test -s mail",
    ]
    told = path.read_text()
    for task, heading in ((first, "## Phase 1: The form\n"), (second, "## Phase 2: The mail\n")):
        below = told.partition(heading)[2].strip().splitlines()[0]
        assert below == f"**Status**: done in {str(task.landed_sha)[:12]} <!-- loopwright -->"


@pytest.mark.trap("lost edit")
def test_an_item_that_is_added_at_the_end_is_done_or_told_and_no_item_stays_in_progress(
    shop: Workshop,
) -> None:
    """Once while the whole is verified, and once after the end; then an editor saves an older copy."""
    go = shop.place / "go"
    wait = f'[ -n "$LOOPWRIGHT_TASK" ] || until [ -e {go} ]; do sleep 0.05; done'
    (shop.repository / "loopwright.toml").write_text(f"[[gates]]\nname = 'go'\nrun = '{wait}'\n")
    path = shop.place / "plan.md"

    def item(key: str) -> str:
        return f"- [ ] {key}\n  - Acceptance: `test -s {key}`\n"

    path.write_text(f"# Shop\n\n## Work\n\n{item('one')}")
    shop.play(makes("one", "late", "after"))
    run = shop.start("run", str(path), "--no-check-base")
    eventually(lambda: [one for one in shop.rows(Plan) if one.status == "VERIFYING"], timeout=60)
    path.write_text(f"{path.read_text()}{item('late')}")
    go.touch()
    assert run.end() == 0, run.out
    assert (shop.started_keys(), path.read_text().count("- [x] ")) == (["one", "late"], 2), path.read_text()

    ended = path.read_text()
    path.write_text(f"{ended}{item('after')}")
    status = shop("status", "--exit-code")
    assert (status.code, "after was added" in status.out) == (3, True), status.out
    assert shop("status", "--json", "--exit-code").document["plan"]["news"]["changes"] == ["after was added"]
    path.write_text(ended.replace("- [x] one", "- [~] one"))
    again = shop("run", str(path), "--no-check-base")
    assert (again.code, path.read_text(), len(shop.rows(Plan))) == (0, ended, 1), again.out + again.err
