"""The record of a plan: whose each commit is, what verified it, and ids that are never paths."""

import pytest
from tests.acceptance.faults.conftest import ESCAPE
from tests.acceptance.faults.record import Record


def _landed(record: Record, wanted: str) -> list[str]:
    plan = record.plan
    said = record.git("log", "--first-parent", f"--format={wanted}", f"{plan['base_sha']}..{plan['branch']}")
    return said.splitlines()


@pytest.mark.capability("C039")
def test_each_landed_commit_says_which_task_it_is(hung: Record) -> None:
    titles = {f"feat({task['key']}): {task['title']}" for task in hung.plan["tasks"]}
    assert set(_landed(hung, "%s")) == titles
    assert len(_landed(hung, "%s")) == len(titles)


@pytest.mark.capability("C036")
def test_each_landed_commit_names_its_task_attempt_and_run_and_the_record_names_the_commit(
    hung: Record,
) -> None:
    for task in hung.plan["tasks"]:
        attempt = hung.attempts(task["key"])[-1]
        run = hung.runs(task["key"], "implementer")[-1]
        said = hung.git("log", "-1", "--format=%B", task["landed_sha"])
        for trailer in (
            f"Loopwright-Plan: {hung.plan['id']}",
            f"Loopwright-Task: {task['id']}",
            f"Loopwright-Attempt: {attempt['id']}",
            f"Loopwright-Run: {run['id']}",
        ):
            assert trailer in said.splitlines()
        assert attempt["candidate_sha"] == task["landed_sha"]
        assert task["landed_sha"] in _landed(hung, "%H")


@pytest.mark.capability("C078", "C080")
def test_the_verification_is_a_run_with_its_checks_its_events_and_its_output(hung: Record) -> None:
    plan = hung.plan
    (run,) = hung.runs(role="verify")
    assert run["label"] == f"verify_{plan['id']}"
    assert (run["state"], run["id"]) == ("COMPLETE", plan["verify_run_id"])
    assert plan["verdict"]["status"] == "passed"
    assert len(plan["verdict"]["checks"]) == len(plan["tasks"]) + 1, "each task's own check, and the gate"
    assert all(check["duration_s"] is not None for check in plan["verdict"]["checks"])
    told = [event["type"] for event in hung.events() if event["run"] == run["id"]]
    assert told == ["run_started", "run_ended", "gate_judged"]
    numbers = [event["n"] for event in hung.events()]
    assert numbers == sorted(set(numbers)), "in order, each once"


@pytest.mark.capability("C080")
def test_what_the_verification_printed_can_be_read(hung: Record) -> None:
    said = hung.call("logs", hung.plan["verify_run_id"])
    assert said.code == 0, said.err
    assert "greeting: grep -q hello greet.txt" in said.out
    assert "passed" in said.out


@pytest.mark.capability("C118")
@pytest.mark.trap("id as a path")
def test_an_id_of_a_task_never_becomes_a_path_a_branch_or_a_command(hung: Record) -> None:
    assert hung.task(ESCAPE)["status"] == "COMPLETE"
    names = [path.name for path in hung.home.parent.rglob("*")]
    assert not [name for name in names if "pwned" in name]
    assert "pwned" not in hung.git("for-each-ref")
    assert "pwned" not in "".join(hung.files())


STATES = {
    "task_queued": "QUEUED",
    "task_started": "RUNNING",
    "task_completed": "COMPLETE",
    "attempt_landed": "LANDED",
    "attempt_rejected": "REJECTED",
    "attempt_broken": "BROKEN",
    "plan_verified": "VERIFIED",
}


@pytest.mark.capability("C115")
def test_a_plan_can_be_told_again_from_its_events_alone(hung: Record) -> None:
    states: dict[str, str] = {}
    commits: dict[str, str] = {}
    judged: dict[str, list[tuple[str, str]]] = {}
    runs: dict[str, dict[str, object]] = {}
    for event in hung.events():
        subject = event["attempt"] if event["type"].startswith("attempt_") else event["task"] or event["plan"]
        if event["type"] in STATES:
            states[subject] = STATES[event["type"]]
            commits |= {subject: event["payload"]["commit"]} if "commit" in event["payload"] else {}
        if event["type"] in ("run_started", "run_ended"):
            runs.setdefault(event["run"], {}).update(event["payload"])
        if event["type"] == "gate_judged":
            judged[event["run"]] = [(one["name"], one["status"]) for one in event["payload"]["checks"]]
    assert states[hung.plan["id"]] == hung.plan["status"]
    told = judged[hung.plan["verify_run_id"]]
    assert told == [(one["name"], one["status"]) for one in hung.plan["verdict"]["checks"]]
    for task in hung.plan["tasks"]:
        assert (states[task["id"]], commits[task["id"]]) == (task["status"], task["landed_sha"])
        attempts = hung.attempts(task["key"])
        assert [states[one["id"]] for one in attempts] == [one["state"] for one in attempts]
    for run in hung.runs():
        said = {name: runs[run["id"]][name] for name in ("agent", "exit_code", "ended_by", "output_sha256")}
        assert said == {name: run[name] for name in said}
