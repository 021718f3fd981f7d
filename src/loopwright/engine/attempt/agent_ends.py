"""Record how a run of an agent ended, and what that means."""

from datetime import datetime
from pathlib import Path
from typing import Any

from loopwright.core.policy import budget
from loopwright.core.policy.prices import estimate
from loopwright.core.policy.quotas import limited_model
from loopwright.core.policy.retry import Failed
from loopwright.core.replies.answers import answer_in
from loopwright.core.replies.questions import Asking, asked_in
from loopwright.core.rows.model import Attempt, Plan, Run
from loopwright.core.values.failures import RULES, Failure, Level
from loopwright.core.values.policy import Answering
from loopwright.core.values.states import AttemptState, RunState
from loopwright.engine.gates.gate_runs import exit_facts
from loopwright.engine.money import pauses, quotas, spending
from loopwright.engine.people import discoveries
from loopwright.engine.processes.runs import Ended
from loopwright.engine.rows.legs import Rows
from loopwright.engine.rows.moves import cancel_attempt, move_attempt, move_run, need
from loopwright.engine.rows.world import World
from loopwright.ports import AgentResult, RunSpec, Tx


def end_run(
    tx: Tx,
    world: World,
    run: Run,
    state: RunState,
    ended: Ended,
    *,
    failure: Failure | None = None,
    retry_at: datetime | None = None,
) -> None:
    """Record how an agent's run ended, the state of its account, its cost and its discoveries."""
    result = ended.result or AgentResult(claimed=False, failure=failure)
    plan = need(tx.get(Plan, run.plan_id), "the plan")
    cost, estimated = result.cost_micros, False
    if cost is None:
        cost = estimate(result.model or run.model, result.usage, plan.policy.prices)
        estimated = cost is not None
    quotas.settle_account(tx, run, account_report(ended, state, failure), chance=world.chance())
    discoveries.note(tx, plan, run, ended.discovered)
    moved = move_run(
        tx,
        run,
        state,
        failure=failure,
        retry_at=retry_at,
        summary=(result.summary or result.detail)[:4000],
        usage=result.usage,
        cost_micros=cost,
        cost_estimated=estimated,
        # The agent's own report counts, also if it says that no conversation began.
        session_ref=result.session_ref if ended.result else run.session_ref,
        model=result.model or run.model,
        agent_version=result.version,
        **exit_facts(ended.exit),
    )
    spending.warn_when_charged(tx, moved)


def is_over_budget(run: Run, ended: Ended, can: frozenset[str]) -> bool:
    """Return whether a run ended, by Loopwright or by itself, because it reached its cost limit."""
    failure = ended.result.failure if ended.result else None
    by_itself = failure is not None and RULES[failure].pauses
    # A budget that Loopwright did not set is the user's own, and an agent that cannot keep one gets none.
    return ended.over is not None or (by_itself and run.max_cost_micros is not None and "budget" in can)


def stop_over_budget(
    tx: Tx, world: World, attempt: Attempt, run: Run, ended: Ended, *, fence: int, **saved: Any
) -> bool:
    """Keep the work of a run that reached its cost limit, and pause the loop; return whether there is more to do."""
    end_run(tx, world, run, RunState.ERROR, ended, failure=Failure.BUDGET)
    current = need(tx.get(Attempt, attempt.id), "the attempt")
    if current.interrupt == "cancel":
        cancel_attempt(tx, current, fence=fence, **saved)
        return True
    plan = need(tx.get(Plan, attempt.plan_id), "the plan")
    own = need(tx.get(Run, run.id), "the run").cost_micros or 0
    # The cost is charged by now, so only the limit of a single run needs it; there it counts at least as reached.
    most = budget.Cap(setting="max_cost_per_run", limit=run.max_cost_micros or 0, spent=own)
    over = budget.used_up(spending.caps(tx, world, plan, run)) or ended.over or most.over
    move_attempt(
        tx,
        current,
        AttemptState.WAITING,
        fence=fence,
        interrupt="",
        wake_at=None,
        wait_reason=over.why,
        **saved,
    )
    pauses.pause_and_ask(tx, world.ids, plan, over, run)
    return False


def asked_of(world: World, spec: RunSpec, result: AgentResult | None) -> tuple[Asking, ...]:
    """Return a run's questions to the user: from its protocol, the question tool, or its last message."""
    # Also for a run that was lost: its notes must not stay unredacted.
    noted = world.asked(spec.directory, spec.secrets)
    if result is None:
        return ()
    asked = (*result.asked, *noted, *asked_in(result.summary))
    # Some adapters read the last message too: each question in it counts once.
    return tuple(dict.fromkeys(asked))


def failure_of(ended: Ended) -> Failed:
    """Return why a run does not count as done."""
    how, result = ended.exit, ended.result
    lasted = how.ended_at - how.started_at if how.started_at else None
    if ended.excess:
        return Failed(failure=Failure.ENVIRONMENT, detail=ended.excess, lasted=lasted, lasting=True)
    if ended.denial:
        return Failed(failure=Failure.ENVIRONMENT, detail=ended.denial, lasted=lasted, lasting=True)
    if result is None:
        return Failed(
            failure=Failure.CRASH, detail=how.error or "the keeper of the run was lost", lasted=None
        )
    detail = "\n".join(text for text in (result.detail, result.summary) if text)
    failure = result.failure or Failure.AGENT_ERROR
    return Failed(
        failure=failure,
        detail=detail,
        lasted=lasted,
        retry_at=result.retry_at,
        limited_model=limited_model(result.windows) if failure is Failure.USAGE_LIMIT else "",
    )


def refusal_of(ended: Ended) -> Failed | None:
    """Return why the service refused a run, if that closes the account for other runs too."""
    if ended.interrupted or (ended.result is not None and ended.result.claimed):
        return None
    failed = failure_of(ended)
    return failed if RULES[failed.failure].closes else None


def account_report(ended: Ended, state: RunState, failure: Failure | None) -> quotas.AccountReport:
    """Return what a run with this end and failure reports about its account."""
    answered = failure is None or RULES[failure].level is Level.ATTEMPT
    return quotas.AccountReport(
        windows=ended.result.windows if ended.result else (),
        refused=refusal_of(ended),
        answered=answered and state is not RunState.CANCELLED,
    )


# Runs that answer and change nothing: Loopwright writes the answer down, and checks it like any work.


def is_answer(result: AgentResult) -> bool:
    """Return whether a run gave an answer that a check can judge, even if it does not fit its schema."""
    return result.claimed or result.failure is Failure.AGENT_ERROR


async def put_answer(world: World, rows: Rows, answering: Answering, result: AgentResult) -> None:
    """Reset the workspace and write the agent's answer into it: nothing else of the run counts."""
    repository, attempt = world.repository(rows.project), rows.attempt
    path, base = Path(need(attempt.workspace, "a workspace")), need(attempt.base_sha, "a base")
    if repository.has_workspace(path):
        await repository.remove_workspace(path)
    await repository.make_workspace(path, base, marker=attempt.id)
    place = path / rows.project.subfolder / answering.file
    # The path may be a link.
    place.unlink(missing_ok=True)
    said = result.last_words or result.summary or result.detail
    place.write_text(answer_in(answering, result.structured, said), encoding="utf-8")


async def last_answer(world: World, rows: Rows) -> str:
    """Return the answer of the attempt before this one; empty if it gave none."""
    answering = need(rows.plan.policy.answer, "what is to be answered")
    earlier = await world.store.read(
        lambda tx: tx.find(Attempt, task_id=rows.task.id, order_by=("-n",), n=rows.attempt.n - 1)
    )
    tip = earlier[0].tip_sha if earlier else None
    if tip is None:
        return ""
    file = f"{rows.project.subfolder}/{answering.file}".lstrip("/")
    return await world.repository(rows.project).file_at(tip, file) or ""
