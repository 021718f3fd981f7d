"""One run of an agent: what it is told, how it is started, and what is written down of its end."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from loopwright.core.gates.gates import task_commands
from loopwright.core.policy import budget
from loopwright.core.policy.budget import over_budget
from loopwright.core.policy.prices import estimate
from loopwright.core.policy.quotas import limited_model
from loopwright.core.policy.retry import Failed
from loopwright.core.prompts import prompts
from loopwright.core.prompts.qa_prompts import look_prompt
from loopwright.core.replies import qa
from loopwright.core.replies.questions import Asking, asked_in
from loopwright.core.replies.reviews import SCHEMA
from loopwright.core.rows.model import Attempt, Loop, Plan, Review, Role, Run, Task, Usage
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.accounts import usual
from loopwright.core.values.containment import Containment
from loopwright.core.values.errors import FenceLost, Refused
from loopwright.core.values.failures import RULES, Failure
from loopwright.core.values.permissions import Access, Permissions, access_of, is_kept, mode_in_words
from loopwright.core.values.states import AttemptState, LoopState, RunState
from loopwright.engine.attempt.answer_runs import last_answer
from loopwright.engine.attempt.leg_rows import Rows
from loopwright.engine.attempt.review_brief import (
    READS,
    Mending,
    brief_reviewer,
    mending,
    place_of,
    review_of,
)
from loopwright.engine.attempt.templates import template_of
from loopwright.engine.gates.gate_runs import exit_facts
from loopwright.engine.memory.interrupts import Interrupted
from loopwright.engine.money import accounts, quotas, spending
from loopwright.engine.people import discoveries
from loopwright.engine.people.served_projects import serves
from loopwright.engine.processes.agent_settings import refuse_foreign
from loopwright.engine.processes.process_environment import attempt_values
from loopwright.engine.processes.runs import Ended, agent_spec
from loopwright.engine.processes.sandboxing import Walls, contain_agent, sandbox_of, shared_by
from loopwright.engine.rows import pauses, questions
from loopwright.engine.rows.moves import (
    cancel_attempt,
    change_attempt,
    move_attempt,
    move_run,
    need,
)
from loopwright.engine.rows.world import World
from loopwright.ports import AgentRequest, AgentResult, RunSpec, Spent, Tx, able

PAUSED = "paused by a person"
"""Why an attempt is parked that nobody but a person wakes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A run that is to be driven."""

    run: Run
    spec: RunSpec
    request: AgentRequest
    before: Spent
    """What its conversation had used before it."""
    walls: Walls


class _OtherwiseMeanwhile(Exception):
    """The account that the run was to draw from has closed, and another one is open; or it may cost something else."""


async def start_run(world: World, rows: Rows, run: Run, *, fence: int) -> Started | None:
    """Start the run, or find it; None when it may not start now, which the rows then say."""
    while True:
        try:
            return await _start(world, rows, run, fence=fence)
        except _OtherwiseMeanwhile:
            continue


async def _start(world: World, rows: Rows, run: Run, *, fence: int) -> Started | None:
    attempt, plan = rows.attempt, rows.plan
    review = await review_of(world, run)
    workspace = place_of(world, attempt, review)

    sandbox = sandbox_of(world, run)
    recorded = run.sandbox if run.state is not RunState.QUEUED else None
    contained = (recorded or sandbox.level.value) != Containment.NONE.value

    def load(tx: Tx) -> tuple[list[Run], Permissions, list[Question], int | None, str, Mending]:
        runs = tx.find(Run, attempt_id=attempt.id, role=run.role, label=run.label, order_by=("-created_at",))
        # As they were when it began: whoever takes up a running agent must answer it as it was answered before.
        allowed = run.permissions or (
            READS
            if review or plan.policy.answer
            else questions.permissions(tx, plan, rows.task, attempt, contained=contained)
        )
        # The same for what it may cost.
        most = run.max_cost_micros if run.state is not RunState.QUEUED else spending.allowance(tx, world, run)
        # And for the account; where all are closed, it does not matter which: the attempt is parked below.
        chosen = run.account or quotas.account_of(tx, world.accounts, attempt, run)
        to_mend = mending(tx, attempt, next((one for one in runs if one.id != run.id), None))
        asked = questions.of_attempt(tx, attempt)
        return runs, allowed, asked, most, chosen or usual(world.accounts, name), to_mend

    name = run.agent or attempt.agent
    runs, permissions, asked, most, drawn, to_mend = await world.store.read(load)
    earlier = [one for one in runs if one.id != run.id and one.started_at]
    before = earlier[0] if earlier else None
    agent = world.agent(run.agent or attempt.agent)
    options = plan.policy.agents.get(agent.name, {})
    can = able(agent, options)
    # Another agent's conversation is none that this one could go on with, nor one that another account's home has.
    same = before is not None and (before.agent, before.account) == (run.agent, drawn)
    resumes = same and "resume" in can
    goes_on = before.session_ref if before and resumes else None
    template = await template_of(world, rows.project, plan, rows.task, review)
    if review is not None:
        prompt = await brief_reviewer(world, rows, review, run, can, template, goes_on=goes_on is not None)
    elif rows.task.type == qa.TYPE:
        prompt = look_prompt(
            template,
            plan,
            rows.task,
            attempt,
            gates=task_commands(plan, rows.task),
            resumed=before is not None,
            answers=tuple((one.text, one.answer) for one in asked if one.answer is not None),
            asks_by_tool="tools" in can,
            by_schema="schema" in can,
        )
    else:
        answers = tuple((one.text, one.answer) for one in asked if one.answer is not None)
        asks_by_tool = "tools" in can
        if plan.policy.answer is not None:
            prompt = prompts.answering(
                template,
                rows.task,
                attempt,
                plan.policy.answer,
                by_schema="schema" in can,
                last=await last_answer(world, rows) if attempt.n > 1 else "",
                resumed=before is not None,
                answers=answers,
                asks_by_tool=asks_by_tool,
            )
        else:
            contradicted = (
                attempt.gate_files.contradicted
                if attempt.gate_files and not any(attempt.gate_files.allowed_by)
                else ()
            )
            prompt = prompts.implementer(
                template,
                plan,
                rows.task,
                attempt,
                gates=task_commands(plan, rows.task),
                resumed=before is not None and not to_mend.is_new and not contradicted,
                answers=answers,
                asks_by_tool=asks_by_tool,
                findings=to_mend.findings,
                contradicted=contradicted,
            )
    directory = world.paths.run(run.id)
    request = AgentRequest(
        prompt=prompt,
        workspace=workspace,
        run_directory=directory,
        subfolder=rows.project.subfolder,
        model=run.model,
        permissions=permissions,
        contained=contained,
        session_ref=goes_on,
        schema=_schema(plan, rows.task, review) if "schema" in can else None,
        tools=world.tools(directory) if "tools" in can and _asks(plan, run) else {},
        max_cost_micros=most if "budget" in can else None,
        options=options,
    )
    account = accounts.account(world.accounts, agent.name, drawn)
    invocation = accounts.drawing(agent.invocation(request), agent.name, account)
    around = attempt_values(world, plan, attempt, key=rows.task.key)
    values = {**world.workspace_values(workspace), **around}
    env, view = world.home_view(
        world.own_sources(world.environment(plan, invocation, values), Path(rows.project.path), workspace),
        invocation,
        world.paths.user(review.id if review else attempt.id),
    )
    spec = agent_spec(
        request,
        invocation,
        run_id=run.id,
        env=env,
        limits=plan.policy.limits,
        secrets=(
            *world.secrets(env, plan.policy.environment),
            *(env[name] for name in account.variables),
        ),
        home=sandbox.view(view),
    )
    shared = await shared_by(world, rows.project, plan, sandbox)
    spec, walls = contain_agent(sandbox, spec, request, shared)
    if run.state is RunState.QUEUED:
        if review is None:
            _refuse_unkept(plan, agent.name, can, contained=contained)
        if invocation.workspace_settings:
            places = invocation.workspace_settings
            await refuse_foreign(world, rows.project, plan, workspace, agent.name, places)

        def started(tx: Tx) -> Run | None:
            current = change_attempt(tx, attempt.id, fence)
            if need(tx.get(Run, run.id), "the run").state is not RunState.QUEUED:
                raise FenceLost(f"{run.id} was started by a second run of the same leg")
            if current.interrupt:
                raise Interrupted  # a person was quicker: what would start now would only be ended
            if _is_held_back(tx, world, current, run):
                change_attempt(tx, attempt.id, fence, wait_reason=PAUSED)
                return None
            if review is not None and (why := _cannot_review(tx, current, review, run, drawn)):
                raise ReviewerUnavailable(why)
            now = spending.allowance(tx, world, run)
            if now is not None and now <= 0:
                waits = spending.waiting(tx, plan)
                move_attempt(tx, current, AttemptState.WAITING, fence=fence, **waits)
                return None
            if now is not None and (most is None or not 0 < most <= now):
                raise _OtherwiseMeanwhile
            if not quotas.may_draw(tx, current, run, drawn) and quotas.account_of(
                tx, world.accounts, current, run
            ):
                raise _OtherwiseMeanwhile
            if not quotas.admit(tx, current, run, fence=fence, account=drawn):
                return None
            if review is None:
                quotas.note_account(tx, current, plan, run, drawn)
                change_attempt(tx, attempt.id, fence, account=drawn)
            if current.state is AttemptState.PREPARING:
                move_attempt(tx, current, AttemptState.WORKING, fence=fence)
            return move_run(
                tx,
                run,
                RunState.RUNNING,
                argv=tuple(world.redact(part, spec.secrets) for part in invocation.argv),
                account=drawn,
                host_id=world.me.host_id,
                boot_id=world.me.boot_id,
                prompt_sha256=hashlib.sha256(prompt.encode()).hexdigest(),
                template=template.used,
                session_ref=invocation.session_ref,
                permission_mode=mode_in_words(permissions.access, can, contained=contained),
                permissions=permissions,
                sandbox=sandbox.level.value,
                sandbox_made_with=sandbox.made_with,
                max_cost_micros=most if now is not None else None,
            )

        begun = await world.store.transact("run.start", started)
        if begun is None:
            return None
        run = begun
    conversation = [one for one in earlier if one.session_ref and one.session_ref == run.session_ref]
    return Started(run=run, spec=spec, request=request, before=_spent(conversation), walls=walls)


class ReviewerUnavailable(Exception):
    """A review cannot take place now, and nobody waits for it; the text says why."""


def _cannot_review(tx: Tx, attempt: Attempt, review: Review, run: Run, account: str) -> str:
    """Return why a reviewer may not start and need not be waited for; empty if it may."""
    cap = spending.review_cap(tx, run)
    if cap is not None and cap.left <= 0:
        return cap.over.why
    if review.contradicted and not quotas.may_draw(tx, attempt, run, account):
        return f"the account of {run.agent} is closed"
    return ""


def _refuse_unkept(plan: Plan, name: str, can: Collection[str], *, contained: bool) -> None:
    """Refuse an agent that nothing keeps from writing where it is only to read.

    Asked before the plan began, too; but the agent may be another one since, or the sandbox gone.
    """
    access = access_of(plan.policy.permission_mode, contained=contained)
    if access is Access.READ_ONLY and not is_kept(access, can, contained=contained):
        raise Refused(
            f"permission_mode is read-only, but nothing keeps {name} to that here",
            hint="`loopwright doctor` says what a sandbox needs; or choose an agent that asks for leave",
        )


def _schema(plan: Plan, task: Task, review: Review | None) -> Mapping[str, Any] | None:
    """Return the form in which an agent is to answer; None for one whose work counts, not its words."""
    if review is not None:
        return SCHEMA
    if plan.policy.answer is not None:
        return plan.policy.answer.schema
    return qa.schema(plan.policy.qa_mode) if task.type == qa.TYPE else None


def _asks(plan: Plan, run: Run) -> bool:
    """Say whether a run may ask a person; one that judges asks nobody: what it does not know is an opinion."""
    if run.role is Role.REVIEWER:
        return False
    return plan.policy.answer is None or plan.policy.answer.asks


def _is_held_back(tx: Tx, world: World, attempt: Attempt, run: Run) -> bool:
    """Say whether no agent may start here now: much may have been said and spent while it waited for its turn."""
    plan = need(tx.get(Plan, attempt.plan_id), "the plan")
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    over = over_budget(plan) or spending.may_not_start(tx, world, plan, run)
    if over is not None:
        loop = pauses.pause_and_ask(tx, world.ids, plan, over, run)
    return loop.state is not LoopState.RUNNING or not serves(tx, world, plan.project_id)


def _spent(runs: Sequence[Run]) -> Spent:
    names = [one.name for one in fields(Usage)]
    known = [one.usage for one in runs if one.usage]
    return Spent(
        cost_micros=sum(one.cost_micros or 0 for one in runs),
        usage=Usage(**{name: sum(getattr(usage, name) or 0 for usage in known) for name in names}),
    )


def end_run(
    tx: Tx,
    run: Run,
    state: RunState,
    ended: Ended,
    *,
    failure: Failure | None = None,
    retry_at: datetime | None = None,
) -> None:
    """Write down how an agent's run ended, what it cost and what work it came upon."""
    result = ended.result or AgentResult(claimed=False, failure=failure)
    plan = need(tx.get(Plan, run.plan_id), "the plan")
    cost, estimated = result.cost_micros, False
    if cost is None:
        cost = estimate(result.model or run.model, result.usage, plan.policy.prices)
        estimated = cost is not None
    quotas.hear(tx, run, result, state, failure)
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
        # What the agent says wins, also when it says that no conversation began.
        session_ref=result.session_ref if ended.result else run.session_ref,
        model=result.model or run.model,
        agent_version=result.version,
        **exit_facts(ended.exit),
    )
    spending.warn_when_charged(tx, moved)


def is_over_budget(run: Run, ended: Ended, can: frozenset[str]) -> bool:
    """Say whether a run was ended, by us or by itself, because it has cost as much as it may."""
    failure = ended.result.failure if ended.result else None
    by_itself = failure is not None and RULES[failure].pauses
    # A budget that we did not give it is its user's own affair, and one that cannot keep any was given none.
    return ended.over is not None or (by_itself and run.max_cost_micros is not None and "budget" in can)


def stop_over_budget(
    tx: Tx, world: World, attempt: Attempt, run: Run, ended: Ended, *, fence: int, **saved: Any
) -> bool:
    """Keep the work of a run that may cost no more, and pause the loop; say whether there is more to do."""
    end_run(tx, run, RunState.ERROR, ended, failure=Failure.BUDGET)
    current = need(tx.get(Attempt, attempt.id), "the attempt")
    if current.interrupt == "cancel":
        cancel_attempt(tx, current, fence=fence, **saved)
        return True
    plan = need(tx.get(Plan, attempt.plan_id), "the plan")
    own = need(tx.get(Run, run.id), "the run").cost_micros or 0
    # Charged by now, so nothing but the cap of a run has to be told what it cost; there it counts at least as reached.
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
    """Return what a run asks a person: in its protocol, by the tool for it, or in its last words."""
    # Also of a run that was lost: what it noted must not stay as it said it.
    noted = world.asked(spec.directory, spec.secrets)
    if result is None:
        return ()
    asked = (*result.asked, *noted, *asked_in(result.summary))
    # Some adapters read the last words too: what is asked in them is one question.
    return tuple(dict.fromkeys(asked))


def failure_of(result: AgentResult | None, ended: Ended) -> Failed:
    """Say what kept a run from being claimed as done."""
    how = ended.exit
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
