"""Several plans, several processes, one home."""

import json

import pytest
from tests.acceptance.cli.program import repository
from tests.acceptance.control.workshop import Workshop, kill, refused
from tests.acceptance.sandbox import FILES, task
from tests.waiting import eventually

from loopwright.core.rows.model import Attempt, Command, Loop, Plan, Role, Run
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.states import AttemptState, RunState


@pytest.mark.trap("hijacked loop")
def test_a_plan_that_is_being_worked_on_names_who_does_and_offers_to_watch(shop: Workshop) -> None:
    agent = shop.gate("agent")
    plan = shop.chain("one", steps={"one": [[agent.step, {"write": "one", "text": "1\n"}]]})
    run = shop.start("run", str(plan))
    shop.until_started("one")
    said = shop.run(plan)
    plan_id = shop.row(Plan).id
    refused(said, 5, f"process {run.process.pid}", f"`loopwright watch {plan_id}`", "pause")
    assert json.loads(shop.run(plan, "--json").out)["exit_code"] == 5
    agent.let_go()
    assert run.end() == 0, run.out
    assert shop.started() == [("one", 1)]


@pytest.mark.trap("late failure", "missed event")
def test_a_failure_is_seen_at_once_by_all_who_watch_while_others_still_work(shop: Workshop) -> None:
    agent = shop.gate("agent")
    shop.play({"bad": [[{"claim": "done"}]], "slow": [[agent.step, {"write": "slow", "text": "1\n"}]]})
    tasks = [task("bad", "test -s bad"), task("slow", "test -s slow")]
    run = shop.start("run", str(shop.plan("two", tasks)), "--max-attempts", "1", "--parallel", "2")
    shop.until_started("bad", "slow")
    watchers = [shop.start("watch", "--json", "--after", "0") for _ in range(2)]
    for watcher in watchers:
        watcher.until('"task_failed"')
    assert shop.task("slow").status == "RUNNING"
    agent.let_go()
    assert run.end() == 1, run.out
    assert [watcher.end() for watcher in watchers] == [1, 1]
    first, second = (_until(one.out, "loop_failed") for one in watchers)
    assert first == second == sorted(set(first))


def _until(said: str, last: str) -> list[int]:
    """The numbers of the events that were told up to this one; whoever looks once more also sees the tidying up."""
    events = [json.loads(line) for line in said.splitlines()[:-1]]
    return [event["n"] for event in events[: [event["type"] for event in events].index(last) + 1]]


@pytest.mark.trap("hijacked loop")
def test_another_plan_is_picked_up_by_the_worker_that_is_there_and_followed(shop: Workshop) -> None:
    agent = shop.gate("agent")
    shop.play(
        {
            "slow": [[agent.step, {"write": "slow", "text": "x\n"}]],
            "quick": [[{"write": "quick", "text": "x\n"}]],
        }
    )
    first = shop.start("run", str(shop.plan("first", [task("slow", "test -s slow")])))
    shop.until_started("slow")
    said = shop.run(shop.plan("second", [task("quick", "test -s quick")]))
    assert said.code == 0, said.out + said.err
    assert "VERIFIED  1/1 tasks" in said.out
    assert first.process.poll() is None
    joined = [event.payload["pid"] for event in shop.events("worker_joined")]
    assert joined == [first.process.pid], "one process worked for both"
    agent.let_go()
    assert first.end() == 0, first.out


@pytest.mark.trap("two controllers")
def test_a_second_worker_stands_by_and_takes_over_from_a_killed_one(shop: Workshop) -> None:
    agent = shop.gate("agent")
    first = shop.start("worker")
    first.until("working in")
    second = shop.start("worker", "--until-idle")
    out = second.until("standing by")
    assert f"process {first.process.pid} works here; this one takes over when it ends" in out
    run = shop.start(
        "run", str(shop.chain("one", "two", steps={"one": [[agent.step, {"write": "one", "text": "1\n"}]]}))
    )
    shop.until_started("one")
    kill(run)
    kill(first)
    second.until("working in")
    agent.let_go()
    assert second.end() == 0, second.out
    assert shop.row(Plan).status == "VERIFIED"
    assert shop.started() == [("one", 1), ("two", 1)]
    assert shop.landed() == ["one", "two"]


def test_a_verified_plan_is_not_done_twice_but_can_be_started_over(shop: Workshop) -> None:
    plan = shop.chain("one")
    assert shop.run(plan).code == 0
    again = shop.run(plan)
    assert again.code == 0
    assert "This plan was already run; --new starts it over." in again.out
    assert "git merge --ff-only" in again.out
    assert len(shop.rows(Attempt)) == 1
    refused(shop("retry", "one"), 2, "the task one has landed", "loopwright reject one")
    refused(shop("cancel", shop.row(Plan).id), 2, "the plan is VERIFIED")
    assert shop.run(plan, "--new").code == 0
    first, second = shop.rows(Plan)
    assert (first.status, second.status) == ("VERIFIED", "VERIFIED")
    assert first.branch != second.branch
    assert [attempt.n for attempt in shop.rows(Attempt)] == [1, 1]
    assert len(shop.rows(Loop)) == 1


def test_a_plan_that_changed_is_a_new_one_only_once_the_old_one_is_over(shop: Workshop) -> None:
    run = shop.start("run", str(shop.half()))
    shop.until_half()
    assert shop("pause", "--now").code == 0
    assert run.end() == 3
    shop.plan("half", [task("half", "test -s whole"), task("more", "test -d .")])
    refused(shop.run(shop.place / "half.yaml"), 2, "changed while its plan", "loopwright cancel")


@pytest.mark.capability("C077")
def test_one_worker_finishes_the_loops_of_three_projects_and_leaves(shop: Workshop) -> None:
    agent = shop.gate("agent")
    names = ("first", "second", "third")
    shop.play({name: [[agent.step, {"write": name, "text": "x\n"}]] for name in names})
    runs = []
    for name in names:
        shop.repository = repository(shop.place / name, FILES)
        runs.append(
            shop.start("run", str(shop.plan(name, [task(name, f"test -s {name}")])), "--parallel", "3")
        )
        shop.until_started(name)
    for run in reversed(runs):
        kill(run)
    agent.let_go()
    said = shop("worker", "--until-idle", "--slots", "3", cwd=shop.place, timeout=90)
    assert said.code == 0, said.out + said.err
    assert [loop.state for loop in shop.rows(Loop)] == ["COMPLETED"] * 3
    assert [plan.status for plan in shop.rows(Plan)] == ["VERIFIED"] * 3
    assert sorted(shop.started()) == sorted((name, 1) for name in names)
    shop.until_quiet()


@pytest.mark.trap("hijacked loop")
def test_run_starts_nothing_for_another_project_but_settles_what_a_dead_worker_left_running(
    shop: Workshop,
) -> None:
    left, mine = shop.gate("left"), shop.gate("mine")
    shop.play(
        {
            "one": [[left.step, {"write": "one", "text": "1\n"}]],
            "two": [[{"write": "two", "text": "2\n"}]],
            "quick": [[mine.step, {"write": "quick", "text": "x\n"}]],
        }
    )
    theirs = shop.repository
    chain = shop.plan("chain", [task("one", "test -s one"), task("two", "test -s two", depends_on=["one"])])
    killed = shop.start("run", str(chain))
    shop.until_started("one")
    kill(killed)
    agent = shop.row(Run, role=Role.IMPLEMENTER, task_id=shop.task("one").id)
    shop.repository = repository(shop.place / "second", FILES)
    run = shop.start("run", str(shop.plan("mine", [task("quick", "test -s quick")])))
    shop.until_started("quick")
    left.let_go()
    eventually(lambda: shop.row(Run, id=agent.id).state == RunState.COMPLETE)
    mine.let_go()
    assert run.end() == 0, run.out
    assert "not continued here: chain" in run.out
    assert shop.started_keys() == ["one", "quick"], "the next task of the other project was not begun"
    (attempt,) = shop.rows(Attempt, id=agent.attempt_id)
    assert attempt.state == AttemptState.CHECKING, "saved, and judged by a worker of its own project"
    shop.repository = theirs
    said = shop("resume", timeout=90)
    assert said.code == 0, said.out + said.err
    assert shop.started_keys() == ["one", "quick", "two"]


def test_a_worker_with_nothing_to_do_leaves_when_idle_is_asked_for(shop: Workshop) -> None:
    said = shop("worker", "--until-idle", "--json")
    assert said.code == 0, said.out + said.err
    told = [json.loads(line) for line in said.out.splitlines()]
    assert [one["type"] for one in told] == ["working", "end"]
    assert (told[0]["home"], told[1]["exit_code"]) == (str(shop.home), 0)


@pytest.mark.capability("C118")
def test_no_command_changes_work_of_another_repository_even_by_its_id(shop: Workshop) -> None:
    shop.play({"asks": [[{"claim": '```loopwright-ask\n{"question": "Which colour?"}\n```\n'}]]})
    run = shop.start("run", str(shop.plan("theirs", [task("asks", "test -s asks")])), "--detach")
    assert run.end() == 0, run.out
    question = eventually(lambda: shop.rows(Question), timeout=60)[0]
    plan = shop.row(Plan).id
    before = shop.rows(Command)
    elsewhere = repository(shop.place / "second", FILES)
    for command in (
        ("answer", question.id, "red"),
        ("accept", plan),
        ("cancel", plan),
        ("retry", question.task_id),
        ("clean", plan, "--yes"),
    ):
        said = shop(*command, "--json", cwd=elsewhere)
        assert (said.code, said.document["error"]["code"]) == (2, "target_not_found"), (command, said.out)
        assert str(shop.repository) in said.document["error"]["hint"]
    assert shop.rows(Command) == before
    assert shop("cancel", plan, cwd=shop.repository).code == 0
