"""One run of an agent: what it is told, how it is started, and what is written down of its end."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path

from loopwright.core import prompts
from loopwright.core.decide import over_budget
from loopwright.core.failures import Failure
from loopwright.core.gates import task_commands
from loopwright.core.model import Attempt, Loop, Plan, Project, Question, Role, Run, Task, Usage
from loopwright.core.permissions import Permissions
from loopwright.core.questions import Asking, asked_in
from loopwright.core.retry import Failed
from loopwright.core.states import AttemptState, LoopState, RunState
from loopwright.engine import envelopes, questions
from loopwright.engine.checks import exit_facts
from loopwright.engine.moves import MACHINE, change_attempt, move_attempt, move_loop, move_run, need
from loopwright.engine.runs import Ended
from loopwright.engine.surroundings import attempt_values
from loopwright.engine.world import World
from loopwright.ports import AgentRequest, AgentResult, RunSpec, Spent, Tx

PAUSED = "paused by a person"
"""Why an attempt is parked that nobody but a person wakes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows that a leg works on, as last read."""

    project: Project
    loop: Loop
    plan: Plan
    task: Task
    attempt: Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A run that is to be driven."""

    run: Run
    spec: RunSpec
    request: AgentRequest
    before: Spent
    """What its conversation had used before it."""


async def start_run(world: World, rows: Rows, run: Run, *, fence: int) -> Started | None:
    """Start the run, or find it; None when it may not start any more, which the rows then say."""
    attempt, plan = rows.attempt, rows.plan
    workspace = Path(need(attempt.workspace, "a workspace"))

    def load(tx: Tx) -> tuple[list[Run], Permissions, list[Question]]:
        runs = tx.find(Run, attempt_id=attempt.id, role=Role.IMPLEMENTER, order_by=("-created_at",))
        # As they were when it began: whoever takes up a running agent must answer it as it was answered before.
        allowed = run.permissions or questions.permissions(tx, plan, rows.task, attempt)
        return runs, allowed, questions.of_attempt(tx, attempt)

    runs, permissions, asked = await world.store.read(load)
    earlier = [one for one in runs if one.id != run.id and one.started_at]
    before = earlier[0] if earlier else None
    agent = world.agent(run.agent or attempt.agent)
    # Another agent's conversation is none that this one could go on with.
    resumes = before is not None and before.agent == run.agent and "resume" in agent.capabilities
    prompt = prompts.implementer(
        plan,
        rows.task,
        attempt,
        gates=task_commands(plan, rows.task),
        resumed=before is not None,
        answers=tuple((one.text, one.answer) for one in asked if one.answer is not None),
        asks_by_tool="tools" in agent.capabilities,
    )
    directory = world.paths.run(run.id)
    request = AgentRequest(
        prompt=prompt,
        workspace=workspace,
        run_directory=directory,
        model=run.model,
        permissions=permissions,
        session_ref=before.session_ref if before and resumes else None,
        tools=world.tools(directory) if "tools" in agent.capabilities else {},
        options=plan.policy.agent_options.get(agent.name, {}),
    )
    invocation = agent.invocation(request)
    values = {**world.workspace_values(workspace), **attempt_values(world, plan, attempt)}
    env, view = world.home_view(
        world.environment(plan, invocation, values), invocation, world.paths.user(attempt.id)
    )
    spec = RunSpec(
        run_id=run.id,
        directory=directory,
        argv=invocation.argv,
        cwd=workspace / rows.project.subfolder,
        env=env,
        stdin=invocation.stdin,
        stdin_data=invocation.stdin_data,
        limits=plan.policy.limits,
        done_pattern=invocation.done_pattern,
        interrupt=invocation.interrupt,
        activity_paths=(workspace,),
        secrets=world.secrets(env),
        files={"prompt.md": prompt, **invocation.files},
        home=view,
    )
    if run.state is RunState.QUEUED:

        def started(tx: Tx) -> Run | None:
            current = change_attempt(tx, attempt.id, fence)
            if _is_held_back(tx, current):
                change_attempt(tx, attempt.id, fence, wait_reason=PAUSED)
                return None
            if not envelopes.admit(tx, current, run, fence=fence):
                return None
            if current.state is AttemptState.PREPARING:
                move_attempt(tx, current, AttemptState.WORKING, fence=fence)
            return move_run(
                tx,
                run,
                RunState.RUNNING,
                argv=invocation.argv,
                host_id=world.me.host_id,
                boot_id=world.me.boot_id,
                prompt_sha256=hashlib.sha256(prompt.encode()).hexdigest(),
                session_ref=invocation.session_ref,
                permissions=permissions,
            )

        begun = await world.store.transact("run.start", started)
        if begun is None:
            return None
        run = begun
    same = [one for one in earlier if one.session_ref and one.session_ref == run.session_ref]
    return Started(run=run, spec=spec, request=request, before=_spent(same))


def _is_held_back(tx: Tx, attempt: Attempt) -> bool:
    """Say whether no agent may start here now: much may have been said and spent while it waited for its turn."""
    plan = need(tx.get(Plan, attempt.plan_id), "the plan")
    loop: Loop = need(tx.get(Loop, plan.loop_id), "the loop")
    over = over_budget(plan)
    if over and loop.state is LoopState.RUNNING:
        loop = move_loop(tx, loop, LoopState.PAUSED, "loop_paused", MACHINE, over)
    return loop.state is not LoopState.RUNNING


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
    """Write down how an agent's run ended and what it cost."""
    result = ended.result or AgentResult(claimed=False, failure=failure)
    envelopes.hear(tx, run, result, state, failure)
    move_run(
        tx,
        run,
        state,
        failure=failure,
        retry_at=retry_at,
        summary=(result.summary or result.detail)[:4000],
        usage=result.usage,
        cost_micros=result.cost_micros,
        # What the agent says wins, also when it says that no conversation began.
        session_ref=result.session_ref if ended.result else run.session_ref,
        model=result.model or run.model,
        agent_version=result.version,
        **exit_facts(ended.exit),
    )


def asked_of(world: World, run: Run, result: AgentResult | None) -> tuple[Asking, ...]:
    """Return what a run asks a person: in its protocol, by the tool for it, or in its last words."""
    if result is None:
        return ()
    return (*result.asked, *world.asked(world.paths.run(run.id)), *asked_in(result.summary))


def failure_of(result: AgentResult | None, ended: Ended) -> Failed:
    """Say what kept a run from being claimed as done."""
    how = ended.exit
    lasted = how.ended_at - how.started_at if how.started_at else None
    if result is None:
        return Failed(failure=Failure.CRASH, detail="the keeper of the run was lost", lasted=None)
    detail = "\n".join(text for text in (result.detail, result.summary) if text)
    return Failed(
        failure=result.failure or Failure.AGENT_ERROR, detail=detail, lasted=lasted, retry_at=result.retry_at
    )
