"""Ask an agent for an answer: a plan of one task, whose agent changes nothing.

So all rules for work apply: it survives a kill, waits for its account, keeps to the budget, is recorded, and
one of Loopwright's own checks judges the answer.
"""

import shlex
import sys
from dataclasses import dataclass, replace

from loopwright.adapters.machine.host import new_id
from loopwright.app import repositories
from loopwright.config.resolve import Settings
from loopwright.core.rows.model import Attempt, Plan, Project, VerdictRecord
from loopwright.core.values.policy import Answering, GateCommand, Policy, ReviewPolicy
from loopwright.core.values.states import ENDED_PLAN, LoopState, PlanState
from loopwright.engine.intake.submit import Submission, Submitted, submit
from loopwright.ports import Base, PlannedTask, PlannedWork, Tx
from loopwright.services.control.sending import send
from loopwright.services.driving.driver import Drive, Rested
from loopwright.services.driving.recorded_environments import submit_again, submitting, with_environment
from loopwright.services.homes.caller import caller_bounds
from loopwright.services.homes.context import Place, actor
from loopwright.services.homes.session import Session
from loopwright.services.preflight.checks import check_costs

# Why an answer could not be used: the findings of its check, where the user sees them at once.


def found_wrong(tx: Tx, plan_id: str) -> tuple[str, ...]:
    """Return the findings of the check in the last judged answer, each problem on its line."""
    for one in tx.find(Attempt, plan_id=plan_id, order_by=("-n",)):
        record = tx.get(VerdictRecord, one.verdict_id) if one.verdict_id else None
        bad = [each for each in record.verdict.commands if each.refused] if record else []
        if bad:
            return tuple(line.strip() for line in bad[0].tail.splitlines() if line.strip())
    return ()


TRIES = 2
"""The first, and one more with the located errors of the first."""
_CHECK_S = 60.0
_OF_NO_USE = frozenset(ENDED_PLAN - {PlanState.VERIFIED})
"""After these, the same question begins again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """The agent that answers."""

    agent: str
    model: str | None
    fallback: bool
    """Whether another agent may replace it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question to an agent."""

    key: str
    title: str
    text: str
    """The agent's prompt."""
    answering: Answering
    check: str
    """The name of the check that the answer has to pass."""
    arguments: tuple[str, ...]
    """The module of that check, and its arguments; the file of the answer comes last."""
    source: str
    """The same question continues the same plan."""
    new: bool = False
    made_for: str = ""
    """The plan that the answer is for; empty if none is known yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The result."""

    plan_id: str
    text: str | None
    """The answer; None if there is no usable one."""
    rested: Rested
    """How the question's plan ended."""
    problems: tuple[str, ...] = ()
    """The check's findings about the last answer, if there is no usable one."""


def who(settings: Settings, agent: str | None, model: str | None, *, fallback: bool) -> Who:
    """Return the agent that answers: the named one, else the working agent."""
    works = settings.policy()
    name = agent or works.agent
    return Who(agent=name, model=model or (works.model if name == works.agent else None), fallback=fallback)


async def ask(at: Session, place: Place, base: Base, asked: Asked, by: Who, drive: Drive) -> Answered:
    """Get an answer, or use the existing one."""
    submission = Submission(
        root=place.root,
        subfolder=place.subfolder,
        source_kind=asked.source.partition(":")[0],
        source_path=asked.source,
        work=_work(asked),
        base=base,
        policy=_policy(at.settings.policy(), asked, by),
        gates=(),
        actor=actor(),
        bounds=caller_bounds(),
        new=asked.new,
        made_for=asked.made_for,
    )
    (task,) = submission.work.tasks
    check_costs(at.settings, replace(submission.work, tasks=(replace(task, agent=by.agent, model=by.model),)))
    store = at.home.store
    with submitting(at.home) as submitter:
        submitted = await submitted_for(at, with_environment(at.home, submission, submitter))
        rested = await drive(at, submitted.plan, submitter)
    plan = await store.read(lambda tx: tx.get(Plan, rested.plan_id))
    if plan is None or plan.status is not PlanState.VERIFIED or plan.result_sha is None:
        wrong = await store.read(lambda tx: found_wrong(tx, rested.plan_id))
        return Answered(plan_id=rested.plan_id, text=None, rested=rested, problems=wrong)
    project = await store.read(lambda tx: tx.get(Project, plan.project_id))
    assert project is not None, "a plan has a project"
    file = f"{place.subfolder}/{asked.answering.file}".lstrip("/")
    text = await repositories(at.home)(project).file_at(plan.result_sha, file)
    return Answered(plan_id=rested.plan_id, text=text, rested=rested)


async def submitted_for(at: Session, submission: Submission, *, again: bool = True) -> Submitted:
    """Submit a plan that asks an agent something, or resume it; with `again`, also one that ended without a result."""
    store = at.home.store
    submitted = await store.transact("submit", lambda tx: submit(tx, new_id, submission))
    if again and not submitted.created and submitted.plan.status in _OF_NO_USE:
        anew = replace(submission, new=True)
        submitted = await store.transact("submit", lambda tx: submit(tx, new_id, anew))
    elif submitted.plan.status not in ENDED_PLAN:
        await submit_again(at.home, submitted.plan, submission)
        if submitted.loop.state is not LoopState.RUNNING:
            await send(at, "resume", submitted.plan.id, {})
    return submitted


def _work(asked: Asked) -> PlannedWork:
    # Not from its working folder, which is the project's: modules there may have the names of Loopwright's.
    words = (sys.executable, "-P", "-m", *asked.arguments, asked.answering.file)
    task = PlannedTask(
        key=asked.key,
        title=asked.title[:200],
        description=asked.text,
        acceptance=(GateCommand(name=asked.check, command=shlex.join(words), timeout_s=_CHECK_S),),
        scope=(asked.answering.file,),
    )
    return PlannedWork(title=task.title, tasks=(task,), sha256=asked.source)


def _policy(policy: Policy, asked: Asked, by: Who) -> Policy:
    return replace(
        policy,
        agent=by.agent,
        model=by.model,
        answer=asked.answering,
        max_attempts=TRIES,
        fix_cycles=0,
        on_task_error="fail",
        finish="leave",
        allow_unverified=False,
        review=ReviewPolicy(),
        fallback=policy.fallback if by.fallback else (),
        # It runs nothing of the project and needs no secrets.
        setup=None,
        copy_files=(),
    )
