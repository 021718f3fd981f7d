"""What follows the end of an agent's run: decided from values alone."""

from typing import Any

from tests.cases import each_case
from tests.contracts.store.rows import AT
from tests.unit.engine.attempt.plain_values import ended_with, leg_rows

from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.policy.budget import Over
from loopwright.core.policy.retry import Failed
from loopwright.core.replies.qa import AREAS, TYPE
from loopwright.core.replies.questions import Asking
from loopwright.core.rows.model import Role, Run
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import RunState
from loopwright.engine.attempt.after_run import (
    Ask,
    EndAttempt,
    EndedRun,
    EndReview,
    HandOn,
    Judge,
    Known,
    NewConversation,
    Next,
    Park,
    PauseForBudget,
    Saved,
    WaitForService,
    after_run,
)
from loopwright.engine.rows.legs import Rows
from loopwright.ports import AgentResult

SAVED = Saved(tip_sha="1" * 40, touched=("a.py",))
CLAIMED = AgentResult(claimed=True)
OVER = Over(setting="max_cost", why="the budget is used up")
QUESTION = Asking(kind="question", text="which one?")
CONTRADICTS = GateFiles(contradicted=("test_a",))


def follows(
    result: AgentResult | None = CLAIMED,
    *,
    rows: Rows | None = None,
    role: Role = Role.IMPLEMENTER,
    ended_by: Any = "itself",
    ended: Any = None,
    end: Any = None,
    **known: Any,
) -> Next:
    rows = rows or leg_rows()
    over = ended_with(result, ended_by=ended_by, **(ended or {}))
    run = Run(
        id="run_1",
        plan_id=rows.plan.id,
        role=role,
        state=RunState.RUNNING,
        max_cost_micros=5,
        created_at=AT,
    )
    if role is not Role.REVIEWER:
        known = {"saved": SAVED, **known}
    return after_run(EndedRun(run=run, ended=over, **(end or {})), rows, Known(**known))


def failed_with(failure: Failure, **more: Any) -> AgentResult:
    return AgentResult(claimed=False, failure=failure, **more)


def why(following: Next) -> Failure | None:
    failed = getattr(following, "failed", None)
    return failed.failure if isinstance(failed, Failed) else None


def test_claimed_work_is_judged_and_a_review_is_read() -> None:
    assert follows() == Judge()
    assert follows(role=Role.REVIEWER) == EndReview()


def test_an_answer_that_a_check_can_judge_counts_like_a_claim() -> None:
    error = failed_with(Failure.AGENT_ERROR)
    assert follows(error, answered=True) == Judge()
    assert isinstance(follows(error), EndAttempt)


def test_a_qa_review_needs_a_report_that_can_be_read() -> None:
    rows = leg_rows(task={"type": TYPE})
    unread = follows(rows=rows)
    assert isinstance(unread, EndAttempt)
    assert (why(unread), unread.counts) == (Failure.LOOK, True)
    checked = [{"area": area, "result": "fine", "how": "looked"} for area in AREAS["full"]]
    read = follows(AgentResult(claimed=True, structured={"checked": checked, "issues": []}), rows=rows)
    assert isinstance(read, Judge)
    assert read.qa is not None
    assert read.qa.issues == ()


def test_what_may_cost_no_more_pauses_the_loop_whatever_it_claims() -> None:
    assert follows(ended={"over": OVER}) == PauseForBudget()
    assert follows(ended={"over": OVER, "excess": "too much"}, role=Role.REVIEWER) == PauseForBudget()
    by_itself = failed_with(Failure.BUDGET)
    assert follows(by_itself, can=frozenset({"budget"})) == PauseForBudget()
    assert isinstance(follows(by_itself), EndAttempt), "we gave it no budget"


def test_the_cap_on_reviews_ends_the_review_and_pauses_nothing() -> None:
    following = follows(ended={"over": OVER}, role=Role.REVIEWER, review_budget_spent=True)
    assert isinstance(following, EndReview)
    assert following.failed is not None
    assert (why(following), following.failed.lasting) == (Failure.BUDGET, True)


def test_a_run_that_took_too_much_room_ends_its_attempt_without_blame() -> None:
    following = follows(ended={"excess": "it filled the disk"})
    assert isinstance(following, EndAttempt)
    assert (why(following), following.counts) == (Failure.ENVIRONMENT, False)


@each_case(
    "result, ended_by, interrupted, parks",
    [
        (CLAIMED, "itself", True, True),
        (None, "asked", False, True),
        (failed_with(Failure.AGENT_ERROR), "asked", False, True),
        (CLAIMED, "asked", False, False),
    ],
)
def test_a_stopped_run_is_parked_unless_it_had_finished(
    result: AgentResult | None, ended_by: str, interrupted: bool, parks: bool
) -> None:
    following = follows(result, ended_by=ended_by, ended={"interrupted": interrupted})
    assert following == (Park() if parks else Judge())


def test_stray_writes_count_unless_the_service_refused_the_agent() -> None:
    strayed = {"strayed": "it wrote into src", "asked": (QUESTION,)}
    following = follows(end=strayed)
    assert isinstance(following, EndAttempt)
    assert (why(following), following.counts) == (Failure.STRAY_WRITE, True)
    assert isinstance(follows(end=strayed, role=Role.REVIEWER), EndReview)
    limited = follows(failed_with(Failure.USAGE_LIMIT), end={"strayed": "it wrote into src"})
    assert isinstance(limited, WaitForService)


def test_a_git_folder_that_leads_elsewhere_ends_the_attempt() -> None:
    refused = Saved(tip_sha="1" * 40, refused=".git is a link")
    following = follows(saved=refused)
    assert isinstance(following, EndAttempt)
    assert (why(following), following.counts) == (Failure.LINKED_GIT, True)


def test_a_question_comes_before_the_claim() -> None:
    assert follows(end={"asked": (QUESTION,)}) == Ask()


def test_unclaimed_work_is_judged_where_something_checks_it() -> None:
    timed_out = failed_with(Failure.TURNS, by_work=True)
    assert follows(timed_out) == Judge()
    assert isinstance(follows(timed_out, saved=Saved(tip_sha="1" * 40)), EndAttempt), "it changed nothing"
    assert isinstance(follows(timed_out, rows=leg_rows(task={"type": TYPE})), EndAttempt)
    assert isinstance(follows(failed_with(Failure.TURNS)), EndAttempt)


def test_a_service_that_refuses_is_waited_for_as_often_as_the_plan_allows() -> None:
    policy, busy = Policy(max_call_retries=2), failed_with(Failure.OVERLOADED)
    waits = [follows(busy, rows=leg_rows(policy=policy, task={"call_failures": n})) for n in range(3)]
    assert [one.calls for one in waits if isinstance(one, WaitForService)] == [1, 2]
    assert isinstance(waits[2], EndAttempt)
    assert not waits[2].counts


def test_waiting_for_a_closed_account_is_not_counted() -> None:
    following = follows(failed_with(Failure.USAGE_LIMIT), rows=leg_rows(task={"call_failures": 1}))
    assert isinstance(following, WaitForService)
    assert following.calls == 1


def test_a_review_waits_too_unless_a_person_can_decide_instead() -> None:
    limited = failed_with(Failure.USAGE_LIMIT)
    assert isinstance(follows(limited, role=Role.REVIEWER), WaitForService)
    assert isinstance(follows(limited, role=Role.REVIEWER, decides=True), EndReview)


def test_a_lost_conversation_is_begun_again_once() -> None:
    crash, resumed = failed_with(Failure.CRASH), {"resumed": True}
    assert isinstance(follows(crash, end=resumed), NewConversation)
    assert isinstance(follows(crash, end=resumed, crashed_before=True), EndAttempt)
    assert isinstance(follows(crash), EndAttempt), "it had none to continue"
    spoke = failed_with(Failure.CRASH, session_ref="s")
    assert isinstance(follows(spoke, end=resumed), EndAttempt)
    assert isinstance(follows(crash, end=resumed, role=Role.REVIEWER), EndReview)


def test_work_that_was_finished_before_its_last_turn_is_judged_however_that_ended() -> None:
    rows = leg_rows(attempt={"gate_files": CONTRADICTS})
    assert follows(failed_with(Failure.AGENT_ERROR), rows=rows) == Judge()
    assert isinstance(follows(failed_with(Failure.AGENT_ERROR), rows=rows, role=Role.REVIEWER), EndReview)


def test_the_next_of_the_chain_takes_over_what_is_not_the_fault_of_the_work() -> None:
    rows = leg_rows(policy=Policy(fallback=("codex",)))
    assert isinstance(follows(failed_with(Failure.MODEL), rows=rows), HandOn)
    refusal = follows(failed_with(Failure.REFUSAL), rows=rows)
    assert isinstance(refusal, EndAttempt)
    assert refusal.counts, "its next attempt is handed on"
    assert isinstance(follows(failed_with(Failure.MODEL), rows=rows, role=Role.REVIEWER), EndReview)


def test_a_run_that_was_lost_ends_its_attempt_without_blame() -> None:
    following = follows(None)
    assert isinstance(following, EndAttempt)
    assert (why(following), following.counts) == (Failure.CRASH, False)
