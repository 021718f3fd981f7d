"""Start one run of an agent.

`gather` reads the facts, `brief` writes the prompt, `equip` prepares what the run needs, `admit` records the
start in one transaction, and `launch` starts its process. A run that is running is not admitted again.
"""

import asyncio
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import Final

from loopwright.core.policy.budget import over_budget
from loopwright.core.policy.share import Used
from loopwright.core.rows.model import AGENT_ROLES, Attempt, Loop, Plan, Project, Review, Run, Usage
from loopwright.core.values.containment import Containment
from loopwright.core.values.errors import FenceLost, Refused
from loopwright.core.values.permissions import Access, access_of, is_kept, mode_in_words
from loopwright.core.values.states import AttemptState, LoopState, RunState
from loopwright.engine.attempt.agent_brief import Facts, brief, gather, learns
from loopwright.engine.memory.interrupts import Interrupted
from loopwright.engine.money import pauses, quotas, spending
from loopwright.engine.money.quotas import QuotaWatch
from loopwright.engine.money.spending import SpendingWatch
from loopwright.engine.people.served_projects import serves
from loopwright.engine.processes.disk import RoomWatch
from loopwright.engine.processes.process_environment import attempt_values
from loopwright.engine.processes.redaction import concealed, concealing, without_secrets
from loopwright.engine.processes.runs import Ended, Progress, agent_spec, drive_agent
from loopwright.engine.processes.sandboxing import Walls, contain_agent, sandbox_of, shared_by
from loopwright.engine.rows import lessons
from loopwright.engine.rows.legs import Rows
from loopwright.engine.rows.moves import change_attempt, move_attempt, move_run, need
from loopwright.engine.rows.world import World
from loopwright.ports import AgentRequest, Invocation, RunSpec, Sandbox, Spent, Tx

_LOOK_AGAIN: Final = timedelta(seconds=5)
"""When an attempt tries again after it found no slot of its agent, account or project."""

PAUSED = "paused by a person"
"""The reason of an attempt that is parked until the user resumes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipped:
    """What the process of a run is started with."""

    request: AgentRequest
    invocation: Invocation
    spec: RunSpec
    walls: Walls


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A run that is ready to be driven."""

    run: Run
    spec: RunSpec
    request: AgentRequest
    before: Spent
    """What its conversation had used before it."""
    walls: Walls


class _TermsChanged(Exception):
    """The account that the run should use has closed and another one is open, or its cost limit changed."""


class ReviewerUnavailable(Exception):
    """A review cannot start now, and nothing waits for it; the text gives the reason."""


async def start_run(world: World, rows: Rows, run: Run, *, fence: int) -> Started | None:
    """Start the run, or find it; None if it may not start now, which the rows then record."""
    plan_id = rows.plan.id
    while True:
        try:
            return await _start(world, rows, run, fence=fence)
        except _TermsChanged:
            # The brief counts what the plan may still spend, so it needs the plan as it is now.
            rows = replace(
                rows, plan=await world.store.read(lambda tx: need(tx.get(Plan, plan_id), "the plan"))
            )


async def _start(world: World, rows: Rows, run: Run, *, fence: int) -> Started | None:
    sandbox = sandbox_of(world, rows.plan, run)
    begun_in = run.sandbox if run.state is not RunState.QUEUED else None
    contained = (begun_in or sandbox.level.value) != Containment.NONE.value
    facts = await gather(world, rows, run, contained=contained)
    request = brief(facts)
    if facts.review is not None:
        # What the author wrote into a file is part of the change, and the prompt is stored.
        told = without_secrets(world, rows.plan, rows.attempt, request.prompt)
        request = replace(request, prompt=told)
    equipped = await equip(world, facts, request, sandbox)
    if run.state is RunState.QUEUED:
        await _refuse(world, facts, equipped)
        admitted = await world.store.transact(
            "run.start", lambda tx: admit(tx, world, facts, equipped, fence=fence)
        )
        if admitted is None:
            return None
        run = admitted
    conversation = [one for one in facts.earlier if one.session_ref and one.session_ref == run.session_ref]
    return Started(
        run=run, spec=equipped.spec, request=request, before=_spent(conversation), walls=equipped.walls
    )


async def equip(world: World, facts: Facts, request: AgentRequest, sandbox: Sandbox) -> Equipped:
    """Prepare what a run needs (a reviewer's tree, its HOME, its sandbox), and return how to start its process."""
    rows, run, review = facts.rows, facts.run, facts.review
    plan, attempt, workspace = rows.plan, rows.attempt, facts.workspace
    if review is not None and run.state is RunState.QUEUED:
        await world.repository(rows.project).checkout(workspace, review.candidate_sha)
    agent = world.agent(run.agent or attempt.agent)
    account = quotas.account(world.accounts, facts.agent, facts.account)
    invocation = quotas.drawing(agent.invocation(request), facts.agent, account)
    values = {
        **world.workspace_values(workspace),
        **attempt_values(world, plan, attempt, key=rows.task.key),
    }
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
    if facts.loop_tools is not None:
        spec = replace(
            spec,
            files={**spec.files, facts.loop_tools.file: facts.loop_tools.token},
            secrets=(*spec.secrets, facts.loop_tools.token),
        )
    shared = await shared_by(world, rows.project, plan, sandbox)
    spec, walls = contain_agent(sandbox, spec, request, shared)
    return Equipped(request=request, invocation=invocation, spec=spec, walls=walls)


def admit(tx: Tx, world: World, facts: Facts, equipped: Equipped, *, fence: int) -> Run | None:
    """Record that a run starts, if nothing changed since its brief; None if its attempt waits instead."""
    rows, run, review, drawn = facts.rows, facts.run, facts.review, facts.account
    most, sandbox = facts.max_cost_micros, equipped.walls.sandbox
    plan = need(tx.get(Plan, rows.plan.id), "the plan")
    current = change_attempt(tx, rows.attempt.id, fence)
    if need(tx.get(Run, run.id), "the run").state is not RunState.QUEUED:
        raise FenceLost(f"{run.id} was started by a second run of the same leg")
    if current.interrupt:
        raise Interrupted  # the user was quicker: a run that starts now would only be ended
    if _is_held_back(tx, world, plan, run):
        change_attempt(tx, current.id, fence, wait_reason=PAUSED)
        return None
    if review is not None and (why := _cannot_review(tx, current, review, run, drawn)):
        raise ReviewerUnavailable(why)
    now = spending.allowance(tx, world, plan, run)
    if now is not None and now <= 0:
        move_attempt(tx, current, AttemptState.WAITING, fence=fence, **spending.waiting(tx, plan))
        return None
    if now is not None and (most is None or not 0 < most <= now):
        raise _TermsChanged
    if not quotas.may_draw(tx, current, run, drawn) and quotas.account_of(tx, world.accounts, current, run):
        raise _TermsChanged
    if not quotas.admit(tx, current, run, fence=fence, account=drawn):
        return None
    if full := full_slots(tx, world, plan, facts.agent, drawn):
        soon = tx.now() + _LOOK_AGAIN
        move_attempt(tx, current, AttemptState.WAITING, fence=fence, wait_reason=full, wake_at=soon)
        return None
    changes = {}
    if review is None:
        quotas.note_account(tx, current, plan, run, drawn)
        changes["account"] = drawn
    if current.state is AttemptState.PREPARING:
        move_attempt(tx, current, AttemptState.WORKING, fence=fence, **changes)
    elif changes:
        change_attempt(tx, current.id, fence, **changes)
    if learns(rows, run):
        lessons.note_uses(tx, world.ids, plan, rows.task, current)
    permissions = equipped.request.permissions
    return move_run(
        tx,
        run,
        RunState.RUNNING,
        argv=tuple(world.redact(part, equipped.spec.secrets) for part in equipped.invocation.argv),
        account=drawn,
        host_id=world.me.host_id,
        boot_id=world.me.boot_id,
        template=facts.template.used,
        prompt_sha256=hashlib.sha256(equipped.request.prompt.encode()).hexdigest(),
        session_ref=equipped.invocation.session_ref,
        permission_mode=mode_in_words(permissions.access, facts.can, contained=facts.contained),
        permissions=permissions,
        sandbox=sandbox.level.value,
        sandbox_made_with=sandbox.made_with,
        max_cost_micros=most if now is not None else None,
    )


def full_slots(tx: Tx, world: World, plan: Plan, agent: str, account: str) -> str:
    """Return what has no slot left for one more agent; empty if everything has."""
    limits = world.slot_limits
    if limits.project is None and not limits.agents.keys() & {agent, f"{agent}/{account}"}:
        return ""
    running = tx.find(Run, state=RunState.RUNNING, role=AGENT_ROLES)
    mine = [one for one in running if one.agent == agent]
    plans = {one.id for one in tx.find(Plan, id={one.plan_id for one in running}, project_id=plan.project_id)}
    used = Used(
        agent=len(mine),
        account=sum(one.account == account for one in mine),
        project=sum(one.plan_id in plans for one in running),
    )
    return limits.full(agent=agent, account=account, used=used)


async def launch(
    world: World,
    rows: Rows,
    started: Started,
    spec: RunSpec,
    *,
    interrupt: asyncio.Event,
    spending: SpendingWatch,
) -> Ended:
    """Start the agent's process, or find it again, and listen to it until it ends; secrets are removed."""
    run, attempt = started.run, rows.attempt
    workspace = (Path(attempt.workspace),) if attempt.workspace else ()

    def clean(text: str) -> str:
        return world.redact(text, spec.secrets)

    ended = await drive_agent(
        world.keepers,
        world.agent(run.agent or attempt.agent),
        spec,
        request=started.request,
        before=started.before,
        interrupt=interrupt,
        heard=concealing(Progress(spec.directory), clean),
        spending=spending,
        quota=QuotaWatch(world, run),
        excess=RoomWatch(world, *workspace, spec.directory),
    )
    return concealed(ended, clean)


async def _refuse(world: World, facts: Facts, equipped: Equipped) -> None:
    """Raise if the agent must not start: it could write against its role, or would load another agent's settings."""
    rows, places = facts.rows, equipped.invocation.workspace_settings
    if facts.review is None:
        _refuse_unkept(rows.plan, facts.agent, facts.can, contained=facts.contained)
    if places:
        await refuse_foreign(world, rows.project, rows.plan, facts.workspace, facts.agent, places)


def _cannot_review(tx: Tx, attempt: Attempt, review: Review, run: Run, account: str) -> str:
    """Return why a reviewer cannot start and is not waited for; empty if it can."""
    cap = spending.review_cap(tx, run)
    if cap is not None and cap.left <= 0:
        return cap.over.why
    if review.contradicted and not quotas.may_draw(tx, attempt, run, account):
        return f"the account of {run.agent} is closed"
    return ""


def _refuse_unkept(plan: Plan, name: str, can: Collection[str], *, contained: bool) -> None:
    """Refuse a read-only agent if no sandbox or permission keeps it from writing.

    This was also checked before the plan began, but the agent or the sandbox may have changed since.
    """
    access = access_of(plan.policy.permission_mode, contained=contained)
    if access is Access.READ_ONLY and not is_kept(access, can, contained=contained):
        raise Refused(
            f"permission_mode is read-only, but nothing keeps {name} to that here",
            code="read_only_not_enforced",
            hint="`loopwright doctor` says what a sandbox needs; or choose an agent that asks for leave",
        )


def _is_held_back(tx: Tx, world: World, plan: Plan, run: Run) -> bool:
    """Return whether no agent may start here now: the user or the budget may have changed that while it waited."""
    loop: Loop = need(tx.get(Loop, plan.loop_id), "the loop")
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


# An agent that reads settings from the repository must not load settings that another agent wrote there.


async def refuse_foreign(
    world: World, project: Project, plan: Plan, workspace: Path, agent: str, places: Sequence[str]
) -> None:
    """Raise if settings in the workspace are neither those of the plan's base nor of the user's own checkout."""
    names = [str(above / place) + "/" * place.endswith("/") for place in places for above in _above(project)]
    repository = world.repository(project)
    own = world.settings_in(Path(project.path), names)
    foreign = [
        path
        for path, text in world.settings_in(workspace, names).items()
        if text is None or text not in (own.get(path), await repository.file_at(plan.base_sha, path))
    ]
    if foreign:
        listed = ", ".join(sorted(foreign)[:5]) + (" and more" if len(foreign) > 5 else "")
        # The full text: it becomes the reason of the failed task, which has no separate hint.
        raise Refused(
            f"{agent} would take settings from {listed}, which changed since the plan began: an agent may have written "
            "them. "
            "Look at them and begin a plan from a commit that has them, let another agent do this task, or set "
            f"agents.{agent}.trust_workspace = true",
            code="agent_settings_changed",
        )


def _above(project: Project) -> list[PurePosixPath]:
    """Return the folders that are searched for such settings: where the agent starts, and all above it."""
    start = PurePosixPath(project.subfolder)
    return [start, *start.parents] if project.subfolder else [start]
