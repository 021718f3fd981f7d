"""What a plan with `auto_heal` tries for a task that failed for good, chosen by its likely cause."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.cases import each_case
from tests.contracts.store import rows

from loopwright.core.healing.diagnosis import Diagnosis, Signature
from loopwright.core.healing.steps import (
    LADDER,
    MOST_IN_VAIN,
    REMEMBERED,
    SPLIT_ORIGIN,
    after_parts,
    may_bypass,
    may_heal,
    next_step,
    restated,
    told_by,
    useless,
    without,
)
from loopwright.core.policy.retry import Failed
from loopwright.core.replies.investigations import Investigation
from loopwright.core.rows.healing_rows import Healing
from loopwright.core.rows.model import Plan, Task
from loopwright.core.values.failures import Failure
from loopwright.core.values.healing import STEPS, Cause, HealStep
from loopwright.core.values.policy import Answering, GateCommand, HealPolicy, Policy, RoundsPolicy
from loopwright.core.values.states import HealingState, TaskState

GATE = GateCommand(name="tests", command="pytest -q")
FAILED = Failed(failure=Failure.GATE, detail="a check failed")


def plan(**policy: Any) -> Plan:
    return rows.plan(rows.loop(rows.project()), policy=Policy(auto_heal=True, **policy), gates=(GATE,))


def a_task(of: Plan, **changes: Any) -> Task:
    return rows.task(of, **{"acceptance": (GATE,)} | changes)


def found(cause: Cause, **changes: Any) -> Diagnosis:
    at = Signature(step="tests", test="test_sum", file="calc.py", error="no sum", id="f" * 16)
    return Diagnosis(
        **{"cause": cause, "because": "why", "signature": at, "repeated": 1, "tried": (), "fixes": ()}
        | changes
    )


def climbed(of: Plan, cause: Cause) -> list[HealStep]:
    """Return the steps that a task gets one after the other while nothing heals it."""
    done: list[HealStep] = []
    while chosen := next_step(of, a_task(of), found(cause), done):
        done.append(chosen.step)
        assert len(done) <= len(HealStep), "the ladder has no end"
    return done


@each_case("cause", Cause)
def test_each_cause_has_a_ladder_that_ends_and_repeats_nothing(cause: Cause) -> None:
    steps = climbed(
        plan(fallback=("codex",), heal=HealPolicy(max_steps=20, stronger="claude:big", investigator="codex")),
        cause,
    )
    assert steps == list(LADDER[cause])
    assert len(set(steps)) == len(steps) > 0
    assert set(steps) <= set(STEPS)


def test_a_step_that_needs_another_agent_is_left_out_where_none_is_configured() -> None:
    assert climbed(plan(), Cause.UNCLEAR) == [HealStep.RESTATE]
    same = plan(agent="claude", model="big", heal=HealPolicy(stronger="claude:big"))
    assert HealStep.STRONGER not in climbed(same, Cause.MODEL)
    assert climbed(plan(heal=HealPolicy(stronger="claude:big")), Cause.UNCLEAR)[-1] is HealStep.STRONGER


def test_a_step_that_was_tried_for_another_cause_is_not_tried_again_and_the_number_is_limited() -> None:
    few = plan(heal=HealPolicy(max_steps=2))
    assert next_step(few, rows.task(few), found(Cause.UNCLEAR), {HealStep.RESTATE}) is None
    chosen = next_step(few, rows.task(few), found(Cause.FLAKY), {HealStep.RESTATE})
    assert chosen is not None
    assert (chosen.step, chosen.because) == (HealStep.FRESH, f"why: {STEPS[HealStep.FRESH]}")
    assert next_step(few, rows.task(few), found(Cause.FLAKY), {HealStep.RESTATE, HealStep.PRUNE}) is None


def ended(step: HealStep, state: HealingState, n: int, *, days_ago: int = 0) -> list[Healing]:
    one = Healing(
        id="heal",
        project_id="proj",
        plan_id="plan",
        task_id="task",
        n=1,
        step=step,
        state=state,
        cause=Cause.UNCLEAR,
        signature="",
        because="",
        created_at=rows.AT,
        ended_at=rows.AT - timedelta(days=days_ago),
    )
    return [one] * n


def test_a_step_that_healed_nothing_in_a_project_is_left_out_after_ten_tries() -> None:
    in_vain = ended(HealStep.RESTATE, HealingState.FAILED, MOST_IN_VAIN)
    assert useless(in_vain, rows.AT) == {HealStep.RESTATE}
    assert useless(in_vain[1:], rows.AT) == frozenset()
    assert useless([*in_vain, *ended(HealStep.RESTATE, HealingState.HEALED, 1)], rows.AT) == frozenset()
    assert useless([*in_vain, *ended(HealStep.SPLIT, HealingState.HEALED, 1)], rows.AT) == {HealStep.RESTATE}
    assert useless(in_vain, rows.AT + REMEMBERED) == frozenset()
    assert useless([replace(one, ended_at=None) for one in in_vain], rows.AT) == frozenset()


def test_a_step_that_healed_nothing_makes_way_for_the_next_one_and_that_is_said() -> None:
    of = plan(fallback=("codex",))
    chosen = next_step(of, a_task(of), found(Cause.UNCLEAR), (), {HealStep.RESTATE})
    assert chosen is not None
    assert chosen.step is HealStep.OTHER_AGENT
    assert "restate healed nothing in this project" in chosen.because
    assert next_step(of, a_task(of), found(Cause.FLAKY), (), {HealStep.FRESH}) is None


def test_nothing_is_healed_where_it_is_switched_off_or_a_person_has_to_decide() -> None:
    healing = plan()
    task = rows.task(healing)
    assert may_heal(healing, task, FAILED)
    assert not may_heal(replace(healing, policy=Policy()), task, FAILED)
    assert not may_heal(healing, task, replace(FAILED, failure=Failure.UNANSWERED))
    assert not may_heal(healing, task, replace(FAILED, lasting=True))
    answers = plan(answer=Answering(role="planner", file="plan.yaml", fence="yaml"))
    assert not may_heal(answers, task, FAILED)
    assert not may_heal(plan(rounds=RoundsPolicy(on=True)), task, FAILED)


def test_the_task_is_restated_as_what_has_to_be_true_at_its_end() -> None:
    of = plan()
    task = rows.task(of, criteria=("the sum is right",))
    told = restated(found(Cause.UNCLEAR, repeated=2), task, (GateCommand(name="t", command="pytest -q"),))
    assert told.splitlines()[:5] == [
        "Likely cause: why.",
        "It fails at tests > calc.py > test_sum, 2 times in a row: no sum",
        "At the end all of this must be true:",
        "- the sum is right",
        "- `pytest -q` exits with 0",
    ]
    assert "in a row" not in restated(found(Cause.UNCLEAR), task, ())


def test_a_task_is_split_once_and_only_where_its_parts_and_the_whole_are_checked() -> None:
    of = plan()
    large = found(Cause.TOO_LARGE)

    def first(task: Task, of: Plan = of) -> HealStep | None:
        chosen = next_step(of, task, large, ())
        return chosen.step if chosen else None

    assert first(a_task(of)) is HealStep.SPLIT
    others = (a_task(of, origin=SPLIT_ORIGIN), a_task(of, type="qa"), a_task(of, acceptance=()))
    assert {first(one) for one in others} == {HealStep.PRUNE}
    assert first(a_task(of), replace(of, gates=())) is HealStep.PRUNE
    assert "x-part-1, x-part-2" in after_parts(("x-part-1", "x-part-2"))


def test_an_investigator_changes_the_cause_and_so_the_ladder() -> None:
    told = told_by(found(Cause.MODEL), Investigation(cause=Cause.FLAKY, why="it\nsleeps"))
    assert (told.cause, told.because) == (
        Cause.FLAKY,
        "a check gives inconsistent results (an investigator: it sleeps)",
    )


def test_a_task_may_be_tried_once_without_the_failed_ones_that_it_needs_if_its_own_checks_can_tell() -> None:
    of = plan()
    failed, done = a_task(of, status=TaskState.ERROR), a_task(of, status=TaskState.COMPLETE)
    assert may_bypass(of, a_task(of), [failed, done], ())
    assert not may_bypass(of, a_task(of), [done], ())
    assert not may_bypass(of, a_task(of), [failed, a_task(of, status=TaskState.CANCELLED)], ())
    assert not may_bypass(of, a_task(of, acceptance=()), [failed], ())
    assert not may_bypass(of, a_task(of), [failed], [HealStep.BYPASS])
    for no in (plan(heal=HealPolicy(max_steps=0)), replace(of, policy=Policy())):
        assert not may_bypass(no, a_task(no), [a_task(no, status=TaskState.ERROR)], ())
    assert "come after x, y" in without(("x", "y"))
