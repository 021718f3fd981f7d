"""Handle work that contradicts existing checks: give the agent its turn, or ask the user.

`core.policy.landing` makes the decision.
"""

from collections.abc import Iterable
from typing import Any

from loopwright.core.gates.contradictions import KIND, has_had_its_turn
from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.policy.landing import AskPerson
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Leg, Run, Task
from loopwright.core.values.states import AttemptState, TaskState
from loopwright.engine.attempt.landing_line import Landing
from loopwright.engine.attempt.reviewing import author_of
from loopwright.engine.rows.moves import MACHINE, commit_leg, move_attempt, move_task, need
from loopwright.engine.rows.questions import of_attempt, open_of, wait_for_answers
from loopwright.engine.rows.queue import new_run
from loopwright.ports import Tx


def give_turn(tx: Tx, landing: Landing, attempt: Attempt, files: GateFiles) -> None:
    """Let the agent continue, and show it the checks that its work contradicts."""
    moved = move_attempt(
        tx,
        attempt,
        AttemptState.WORKING,
        fence=landing.fence,
        about={"contradicted": len(files.contradicted)},
        run_id=new_run(tx, landing.world.ids, attempt, landing.plan).id,
        gate_files=files,
    )
    told: dict[str, Any] = {"checks": list(files.contradicted[:20]), "count": len(files.contradicted)}
    tx.append(happened("checks_contradicted", MACHINE, plan=landing.plan, attempt=moved, **told))


def ask_person(
    tx: Tx, landing: Landing, attempt: Attempt, decision: AskPerson, verdict_id: str | None
) -> None:
    """Park the attempt until the user decides about the checks that it contradicts."""
    wait_for_answers(
        tx,
        landing.world.ids,
        landing.plan,
        attempt,
        author_of(tx, attempt),
        (decision.asking,),
        fence=landing.fence,
        gate_files=decision.files,
        verdict_id=verdict_id,
    )


def undecided(tx: Tx, waiting: Iterable[Attempt]) -> frozenset[str]:
    """Return the parked attempts that wait for the user's decision about contradicted checks."""
    asked = [one for one in waiting if one.questions and has_had_its_turn(one)]
    return frozenset(one.id for one in asked if any(each.kind == KIND for each in open_of(tx, one)))


def decided(tx: Tx, waiting: Iterable[Attempt]) -> frozenset[str]:
    """Return the parked attempts for which the user has decided about contradicted checks."""
    asked = [one for one in waiting if one.questions and has_had_its_turn(one)]
    return frozenset(one.id for one in asked if not open_of(tx, one) and is_decided(tx, one))


def is_decided(tx: Tx, attempt: Attempt) -> bool:
    """Return whether a parked attempt waited for the user's decision about contradicted checks."""
    asked = of_attempt(tx, attempt)
    run = tx.get(Run, attempt.run_id) if attempt.run_id else None
    # A run that is newer than the question was parked for another reason.
    return bool(asked) and asked[-1].kind == KIND and (run is None or run.created_at <= asked[-1].created_at)


def judge_again(tx: Tx, attempt: Attempt) -> Leg:
    """Check an attempt again after the user decided about the checks that it contradicts."""
    task = need(tx.get(Task, attempt.task_id), "the task")
    if task.status is TaskState.AWAITING_RESPONSE:
        move_task(tx, task, TaskState.RUNNING, "task_resumed")
    moved = move_attempt(tx, attempt, AttemptState.CHECKING, wake_at=None, wait_reason="", envelope_id=None)
    return commit_leg(tx, moved)
