"""Taking work in: the same plan twice is one plan, a wrong one is none, and names are safe in a repository."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each_case
from tests.contracts.store import rows
from tests.doubles import FAILED, Home, planned
from tests.refusals import raises_code

from loopwright.adapters.store.codec import encode
from loopwright.core.plans.plan_evaluators import Judgement, Remark
from loopwright.core.replies.reviews import Severity
from loopwright.core.rows.model import Attempt, Loop, Plan, Project, Run, Task
from loopwright.core.values.errors import BadPlan, Refused
from loopwright.core.values.failures import Failure
from loopwright.core.values.ids import short_id
from loopwright.core.values.policy import GateCommand, Policy
from loopwright.core.values.states import AttemptState, LoopState, PlanState, TaskState
from loopwright.engine.intake.evaluation import Evaluation, evaluate
from loopwright.engine.intake.submit import is_known, submit
from loopwright.engine.processes.process_environment import CACHES, attempt_values, free_port_base
from loopwright.engine.rows.ref_names import attempt_ref, commit_subject, hand_branch, plan_branch, trailers
from loopwright.ports import Mark, PlannedTask, PlannedWork, Trailers


def create(home: Home, *tasks: PlannedTask, **changes: Any) -> bool:
    asked = home.submission(*tasks, **changes)
    return home.store.transact_sync("submit", lambda tx: submit(tx, home.ids, asked)).created


def test_a_source_is_not_read_in_another_form_while_its_plan_is_unfinished() -> None:
    home = Home()
    home.submit(planned("a"))
    before = home.loop().source_kind
    with raises_code("source_kind_changed") as refused:
        create(home, planned("a"), planned("b"), source_kind="another")
    assert "loopwright cancel" in (refused.value.hint or "")
    assert home.loop().source_kind == before


# --- submitting --------------------------------------------------------------------------------------


def test_a_plan_is_written_with_its_tasks_their_order_and_what_each_waits_for() -> None:
    home = Home()
    plan = home.submit(planned("a"), planned("b", "a", "a"), planned("c", "a", "b"))
    a, b, c = home.all(Task, order_by=("position",))
    assert (a.depends_on, b.depends_on, c.depends_on) == ((), (a.id,), (a.id, b.id))
    assert (a.dependents, b.dependents, c.dependents) == ((b.id, c.id), (c.id,), ())
    assert [task.unmet for task in (a, b, c)] == [0, 1, 2]
    assert {task.status for task in (a, b, c)} == {TaskState.CREATED}
    assert (plan.status, plan.open_tasks, plan.branch) == (
        PlanState.DRAFT,
        3,
        f"loopwright/{short_id(plan.id)}/main",
    )
    assert home.loop().state is LoopState.RUNNING
    assert home.told() == ["project_registered", "loop_created", "plan_created", "loop_started"]


@pytest.mark.capability("C020")
def test_a_plan_is_evaluated_before_anything_of_it_is_kept() -> None:
    home = Home()
    acceptance = (GateCommand(name="own", command="test -d ."),)
    plan = home.submit(planned("a"), planned("b", "a", acceptance=acceptance))
    facts = {"tasks": 2, "critical_path": 2, "without_acceptance": 1, "passed": True}
    told = {"check": "acceptance", "weight": "told", "text": "these have no acceptance command: a"}
    assert plan.evaluation == {
        **facts,
        "findings": [told],
        "evaluator": None,
        "despite": "",
        "red_on_base": [],
    }
    [told] = home.events("plan_created")
    assert told.payload == {"title": "A plan", **plan.evaluation}


def test_a_plan_itself_does_not_grow_with_its_tasks() -> None:
    # It is read and written several times for each of them.
    def columns(count: int) -> int:
        home = Home()
        home.submit(*(planned(f"task-{n:04}") for n in range(count)))
        stored = encode(home.plan())
        return sum(len(str(value)) for value in stored.values())

    assert columns(300) <= columns(3) + 200


def test_what_is_done_already_is_not_counted() -> None:
    done = planned("a", mark=Mark.DONE)
    plan = Home().submit(done, planned("b", "a"), planned("c", "b"))
    assert (plan.evaluation["tasks"], plan.evaluation["critical_path"]) == (2, 2)
    assert (plan.open_tasks, plan.evaluation["without_acceptance"]) == (2, 2)


@each_case(
    ("tasks", "problem"),
    [
        ((planned("a"), planned("a")), "task ids are not unique"),
        ((planned("a", "ghost"),), 'task "a" depends on unknown "ghost"'),
        ((planned("a", "b"), planned("b", "a")), "tasks wait for each other: a -> b -> a"),
    ],
)
def test_a_wrong_plan_leaves_nothing_behind(tasks: tuple[PlannedTask, ...], problem: str) -> None:
    home = Home()
    with pytest.raises(BadPlan) as bad:
        home.submit(*tasks)
    assert bad.value.problems == (problem,)
    assert home.everything() == {}
    assert home.told() == []


@pytest.mark.capability("C118")
def test_two_places_are_two_projects_and_the_same_place_is_one() -> None:
    home = Home()
    for root, subfolder in (("/one", ""), ("/two", ""), ("/one", "sub"), ("/one", "")):
        create(home, planned("a"), root=Path(root), subfolder=subfolder)
    assert len(home.all(Project)) == len(home.all(Loop)) == 3


async def test_the_loop_whose_source_says_that_it_is_more_urgent_goes_first() -> None:
    home = await Home(slots=1).launch()
    for name, priority in (("late", 9), ("usual", 5), ("first", 1)):
        work = PlannedWork(title=name, tasks=(planned(name),), sha256=name, priority=priority)
        home.submit(work=work, source_path=name)
    legs = await home.turn()
    assert home.get(Attempt, legs[0].subject).task_id == home.task("first").id
    work = PlannedWork(title="late", tasks=(planned("late"),), sha256="late", priority=2)
    home.submit(work=work, source_path="late")
    assert [loop.priority for loop in home.all(Loop, source_path="late")] == [2], "it can be changed"


def test_the_same_plan_twice_is_one_plan() -> None:
    home = Home()
    assert create(home, planned("a"))
    assert not create(home, planned("a"))
    assert len(home.all(Plan)) == len(home.all(Task)) == 1


async def test_a_plan_that_ended_is_shown_again_unless_it_should_start_over() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    home.hand.land(leg)
    [leg] = await home.turn()
    await home.verify(leg, FAILED)
    assert not create(home, planned("a"))
    assert home.loop().state is LoopState.FAILED
    assert create(home, planned("a"), new=True)
    assert home.loop().state is LoopState.RUNNING
    assert home.get(Plan, home.loop().plan_id).status is PlanState.DRAFT


async def test_a_changed_source_gives_a_new_plan_once_the_old_one_has_ended() -> None:
    home = Home()
    first = home.submit(planned("a"))
    for new in (False, True):
        with pytest.raises(Refused) as refused:
            create(home, planned("b"), sha256="b" * 64, new=new)
        assert f"loopwright cancel {short_id(first.id)}" in (refused.value.hint or "")
        assert "--new" not in (refused.value.hint or "")
    await home.command("cancel", first.id)
    assert create(home, planned("b"), sha256="b" * 64)


async def test_a_cancelled_plan_is_started_over_only_by_someone_who_says_so() -> None:
    home = Home()
    first = home.submit(planned("a"))
    await home.command("cancel", first.id)
    assert not create(home, planned("a"))
    assert home.loop().plan_id == first.id
    assert create(home, planned("a"), new=True)
    assert home.loop().plan_id != first.id
    assert (home.loop().state, home.loop().reason) == (LoopState.RUNNING, "")


def test_a_tasks_own_limits_win_over_the_plans() -> None:
    home = Home()
    home.submit(planned("a", max_attempts=5), planned("b"), policy=Policy(max_attempts=2))
    assert [task.max_attempts for task in home.all(Task, order_by=("key",))] == [5, 2]


# --- names -------------------------------------------------------------------------------------------

EVIL = "../../x\n\nLoopwright-Task: another"


def test_refs_and_branches_hold_our_ids_only() -> None:
    plan = rows.plan(rows.loop(rows.project()))
    task = rows.task(plan, key=EVIL)
    attempt = rows.attempt(task, n=3)
    assert attempt_ref(attempt) == f"refs/loopwright/attempts/{plan.id}/{task.id}/3"
    short = f"loopwright/{short_id(plan.id)}/main"
    assert plan_branch(plan.id) == short
    assert plan_branch(plan.id, [short]) == f"loopwright/{plan.id}/main", "another plan has the short one"
    assert hand_branch(plan, task) == f"{plan.branch.removesuffix('/main')}/{task.id}"


def test_the_first_line_of_a_commit_is_one_line_whatever_the_task_is_called() -> None:
    """A second line could pass for a trailer, and a trailer says which task a commit belongs to."""
    task = rows.task(rows.plan(rows.loop(rows.project())), key=EVIL, title="Do\nit  well " + "x" * 300)
    subject = commit_subject(task)
    assert subject.startswith("feat(../../x Loopwright-Task: another): Do it well x")
    assert len(subject) == 200


async def test_a_commit_says_whose_it_is() -> None:
    home = await Home().launch()
    plan = home.submit(planned("a"))
    await home.turn()
    attempt = home.attempt("a")
    marks = trailers(attempt, home.get(Run, attempt.run_id))
    assert marks == Trailers(
        plan=plan.id, task=home.task("a").id, attempt=attempt.id, run=attempt.run_id or ""
    )


# --- surroundings ------------------------------------------------------------------------------------


@each_case("shared", sorted(CACHES))
def test_caches_are_shared_by_all_attempts_of_a_home(shared: str) -> None:
    home = Home()
    plan = home.submit(planned("a"))
    values = attempt_values(home.world, plan, None)
    assert values[shared].startswith("/nowhere/cache/")
    assert values["LOOPWRIGHT_PLAN"] == plan.id
    assert "LOOPWRIGHT_TASK" not in values


async def test_attempts_that_run_side_by_side_have_ports_and_names_of_their_own() -> None:
    home = await Home(slots=3).launch()
    plan = home.submit(planned("a"), planned("b"), planned("c"), policy=Policy(parallel=3))
    legs = await home.turn()
    for leg in legs:
        home.hand.until(leg, AttemptState.WORKING)
    values = [attempt_values(home.world, plan, home.get(Attempt, leg.subject)) for leg in legs]
    assert [one["LOOPWRIGHT_PORT_BASE"] for one in values] == ["20000", "20010", "20020"]
    assert {one["LOOPWRIGHT_PORT_COUNT"] for one in values} == {"10"}
    assert len({one["COMPOSE_PROJECT_NAME"] for one in values}) == 3
    assert len({one["LOOPWRIGHT_ATTEMPT"] for one in values}) == 3
    assert {one["LOOPWRIGHT_TASK"] for one in values} == {task.id for task in home.all(Task)}
    named = attempt_values(home.world, plan, home.get(Attempt, legs[0].subject), key="a")
    assert named == {**values[0], "LOOPWRIGHT_TASK_NAME": "a"}


async def test_ports_are_free_again_when_their_attempt_has_ended_and_are_counted_per_host() -> None:
    home = await Home().launch()
    home.submit(planned("a"), planned("b"))
    first, second = await home.turn()
    for leg in (first, second):
        home.hand.until(leg, AttemptState.WORKING)
    assert home.store.read_sync(lambda tx: free_port_base(tx, "host-a")) == 20020
    assert home.store.read_sync(lambda tx: free_port_base(tx, "host-b")) == 20000
    home.hand.fail(first, Failure.AUTH)
    assert home.store.read_sync(lambda tx: free_port_base(tx, "host-a")) == 20000


def test_an_attempt_without_ports_yet_is_told_of_none() -> None:
    home = Home()
    plan = home.submit(planned("a"))
    values = attempt_values(home.world, plan, rows.attempt(home.task("a")))
    assert not [name for name in values if "PORT" in name]


def test_the_gate_of_a_whole_plan_has_ports_too_and_no_attempts_ones() -> None:
    home = Home()
    plan = home.submit(planned("a"))
    values = attempt_values(home.world, plan, None)
    base = int(values["LOOPWRIGHT_PORT_BASE"])
    assert 25_000 <= base < 32_000
    assert base % 10 == 0
    assert attempt_values(home.world, plan, None) == values


def test_a_plan_whose_checks_cannot_fail_needs_a_person_s_reason() -> None:
    home = Home()
    vain = planned("a", acceptance=(GateCommand(name="own", command="true"),))
    with raises_code("plan_objected"):
        home.submit(vain)
    plan = home.submit(vain, evaluation=evaluation(vain, despite="only to see it run"))
    assert (plan.evaluation["passed"], plan.evaluation["despite"]) == (False, "only to see it run")
    assert [event.payload["reason"] for event in home.events("plan_forced")] == ["only to see it run"]


def evaluation(*tasks: PlannedTask, evaluated: str = "", despite: str = "") -> Evaluation:
    work = PlannedWork(title="A plan", tasks=tasks, sha256="a" * 64, evaluated=evaluated)
    return evaluate(work, "plan.yaml", despite=despite)


def judgement(*severities: Severity) -> Judgement:
    said = tuple(Remark(task="a", severity=one, text="it cannot work") for one in severities)
    return Judgement(plan_id="plan_x", agent="claude", model=None, summary="no", findings=said)


@pytest.mark.capability("C020")
def test_what_an_evaluator_or_the_source_s_own_report_objects_to_runs_only_with_a_persons_reason() -> None:
    home, task = Home(), planned("a")
    wanted = ("every plan is evaluated",)
    objected = judgement(Severity.BLOCKING, Severity.OPINION)
    with raises_code("plan_objected"):
        evaluation(task).with_judgement(wanted, None)
    with raises_code("plan_objected") as refused:
        evaluation(task).with_judgement(wanted, objected)
    assert "--despite" in (refused.value.hint or "")
    plan = home.submit(task, evaluation=evaluation(task, despite="it can").with_judgement(wanted, objected))
    assert plan.evaluation["evaluator"]["plan_id"] == "plan_x"
    assert (plan.evaluation["passed"], plan.evaluation["despite"]) == (False, "it can")
    [forced] = home.events("plan_forced")
    assert forced.payload == {"reason": "it can"}

    other = Home()
    asked = other.submission(task)
    failed = replace(asked, work=replace(asked.work, evaluated="failed"))
    passed = replace(asked, evaluation=evaluation(task, evaluated="passed").with_judgement(wanted, None))
    with raises_code("plan_objected"):
        other.store.transact_sync("submit", lambda tx: submit(tx, other.ids, failed))
    assert not other.store.read_sync(lambda tx: is_known(tx, passed))
    assert other.store.transact_sync("submit", lambda tx: submit(tx, other.ids, passed)).created
    assert other.store.read_sync(lambda tx: is_known(tx, asked)), "what there is was judged when it came"
    assert not other.store.read_sync(lambda tx: is_known(tx, replace(asked, new=True)))
