"""Pause, resume, stop, cancel, retry, verify again, reject, roll back, mark as reviewed, and open an account."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from loopwright.adapters.machine.host import new_id
from loopwright.app import repositories
from loopwright.core.policy.budget import CAPS
from loopwright.core.policy.rejections import FEEDBACK, parse_comment
from loopwright.core.rows.model import Command, Plan, Task
from loopwright.core.values.errors import UserError
from loopwright.core.values.ids import Kind
from loopwright.engine.people.taking_back import Asked, check, chosen, load, undoes
from loopwright.ports import Tx
from loopwright.services.control.sending import end_stopped_agents, find_target, is_worked_on, plan_of, send
from loopwright.services.homes.context import actor, look_settings, settings_for
from loopwright.services.homes.session import Session
from loopwright.services.preflight.checks import check_another_try, check_new_limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision that was carried out."""

    command: Command
    """Its record; `result` is the result in words."""
    about: Plan | Task
    plan: Plan
    """As it is after the decision."""
    notes: tuple[str, ...]
    """Warnings."""
    needs_worker: bool
    """Whether the plan can continue and no process works on it: drive it, or start a worker."""


Told = Callable[[Decision], None]
"""Called as soon as a decision is carried out, before the agents that have to stop have ended."""


def _unheard(decision: Decision) -> None:
    """Ignore the decision."""


UNHEARD: Final[Told] = _unheard


async def pause(at: Session, plan: str | None = None, *, now: bool = False, told: Told = UNHEARD) -> Decision:
    """Start nothing more in a plan; running agents finish, or are interrupted with `now`."""
    return await _decide(at, "pause", plan, {"now": now}, told=told)


async def stop(at: Session, plan: str | None = None, *, told: Told = UNHEARD) -> Decision:
    """Stop a plan: running agents are interrupted, and their work is kept."""
    return await _decide(at, "stop", plan, {}, told=told)


async def cancel(
    at: Session,
    target: str,
    *,
    reason: str = "",
    chain: bool = False,
    once: bool = False,
    told: Told = UNHEARD,
) -> Decision:
    """Cancel a task or a plan; `chain` also cancels what waits for the task.

    What landed stays. With `once` a plan that is already cancelled is refused: of several callers at once,
    one cancels it.
    """
    arguments: dict[str, Any] = {"reason": reason} if reason else {}
    if chain:
        arguments["chain"] = True
    if once:
        arguments["once"] = True
    return await _decide(at, "cancel", target, arguments, told=told)


async def to_cancel(at: Session, target: str) -> Plan | Task:
    """Return what `cancel` would cancel, for a caller that asks first."""
    return await at.home.store.read(lambda tx: find_target(tx, target, "cancel"))


async def resume(
    at: Session,
    plan: str | None = None,
    *,
    limits: Mapping[str, Any] | None = None,
    no_wait: bool = False,
    told: Told = UNHEARD,
) -> Decision:
    """Let a paused or stopped plan continue; `limits` are new values of cost settings."""
    policy = settings_for(flags=limits).policy() if limits else None
    arguments: dict[str, Any] = {key: getattr(policy, key) for key in limits or ()}
    if no_wait:
        arguments["wait_for_limits"] = False
    return await _decide(at, "resume", plan, arguments, told=told, continues=True)


async def retry(
    at: Session,
    task: str,
    *,
    note: str | None = None,
    agent: str | None = None,
    model: str | None = None,
    allow: Sequence[str] = (),
    told: Told = UNHEARD,
) -> Decision:
    """Give a failed or cancelled task another attempt; `allow` names judging files that it may change."""
    _check_agent(agent, model)
    arguments = {"note": note, "agent": agent, "model": model, "allow": list(allow)}
    return await _decide(at, "retry", task, arguments, told=told, continues=True)


async def reset(at: Session, task: str, *, told: Told = UNHEARD) -> Decision:
    """Let a task start over: pending, with no attempt used up; its history is kept."""
    return await _decide(at, "reset", task, {}, told=told, continues=True)


async def inject(at: Session, plan: str, item: Mapping[str, Any], *, told: Told = UNHEARD) -> Decision:
    """Add a task to a running plan: `key`, `title`, and optional parts of a task."""
    return await _decide(at, "inject", plan, item, told=told, continues=True)


async def split(
    at: Session, task: str, parts: Sequence[tuple[str, str]], *, told: Told = UNHEARD
) -> Decision:
    """Put smaller tasks, each a title and a description, before a task that no agent works on."""
    said = [{"title": title, "description": description} for title, description in parts]
    return await _decide(at, "split", task, {"parts": said}, told=told, continues=True)


async def unsplit(at: Session, task: str, *, told: Told = UNHEARD) -> Decision:
    """Take the open parts of a split task out of its plan again."""
    return await _decide(at, "unsplit", task, {}, told=told)


async def set_task_priority(at: Session, task: str, priority: int, *, told: Told = UNHEARD) -> Decision:
    """Change which task of a plan goes first; lower is earlier."""
    return await _decide(at, "set_priority", task, {"priority": priority}, told=told)


async def set_loop_priority(at: Session, loop_id: str, priority: int) -> Command:
    """Change which loop goes first; lower is earlier."""
    return await send(at, "set_priority", loop_id, {"priority": priority})


async def set_loop_agent(
    at: Session,
    loop_id: str,
    *,
    agent: str | None = None,
    model: str | None = None,
    parallel: int | None = None,
) -> Command:
    """Give what a loop has not begun yet to another agent or model, or change how many agents it may have at once."""
    _check_agent(agent, model)
    return await send(at, "set_agent", loop_id, {"agent": agent, "model": model, "parallel": parallel})


async def set_agent(
    at: Session, task: str, *, agent: str | None = None, model: str | None = None, told: Told = UNHEARD
) -> Decision:
    """Give a task to another agent or model from its next attempt on."""
    _check_agent(agent, model)
    return await _decide(at, "set_agent", task, {"agent": agent, "model": model}, told=told)


async def reverify(
    at: Session, plan: str | None = None, *, partial: bool = False, told: Told = UNHEARD
) -> Decision:
    """Run the complete gate of a plan that waits for that, of a failed one again, or without cancelled tasks.

    With `partial`, cancel the tasks that failed and judge the rest.
    """
    return await _decide(
        at, "reverify", plan, {"partial": True} if partial else {}, told=told, continues=True
    )


async def interrupt(
    at: Session, task: str, *, run_id: str = "", note: str = "", told: Told = UNHEARD
) -> Decision:
    """End the agent of a task; the task begins again with the note, and no attempt is used up."""
    return await _decide(at, "interrupt", task, {"run": run_id, "note": note}, told=told, continues=True)


async def set_limits(
    at: Session, plan: str, limits: Mapping[str, int | None], *, told: Told = UNHEARD
) -> Decision:
    """Change cost limits of a plan, in millionths of a dollar; None removes one."""
    return await _decide(at, "set_limits", plan, limits, told=told)


async def fail(at: Session, plan: str, reason: str, *, told: Told = UNHEARD) -> Decision:
    """End a plan as failed, for a reason; what landed stays."""
    return await _decide(at, "fail", plan, {"reason": reason}, told=told)


async def dispatch(
    at: Session, plan: str | None = None, *, parallel: bool = True, despite: str = "", told: Told = UNHEARD
) -> Decision:
    """Start a draft; `despite` is the reason to run one that its evaluation refuses."""
    arguments = {"parallel": parallel, "despite": despite}
    return await _decide(at, "dispatch", plan, arguments, told=told, continues=True)


async def reject(
    at: Session,
    task: str,
    *,
    note: str | None = None,
    comments: Sequence[tuple[str, str]] = (),
    feedback: Sequence[str] = (),
    told: Told = UNHEARD,
) -> Decision:
    """Send a task's work back: another attempt starts with the note and the comments, FILE:LINE and a text each.

    `feedback` are the ids of what a pull request brought back.
    """
    parsed = [parse_comment(place, text) for place, text in comments]
    if not (note or "").strip() and not parsed:
        raise UserError(
            "nothing is said about what is wrong",
            code="note_missing",
            hint='--note "…" or --at FILE:LINE "…"',
        )
    arguments: dict[str, Any] = {"note": note or "", "comments": parsed}
    if feedback:
        arguments[FEEDBACK] = list(feedback)
    return await _decide(at, "reject", task, arguments, told=told, continues=True)


async def rollback(at: Session, target: str, *, to: str | None = None, told: Told = UNHEARD) -> Decision:
    """Remove a landed task from the plan's branch, with everything that builds on it."""
    return await _decide(at, "rollback", target, _until(to), told=told)


async def to_roll_back(at: Session, target: str, *, to: str | None = None) -> tuple[str, ...]:
    """Return the tasks whose work `rollback` would remove; raise if it would be refused."""
    row = await at.home.store.read(lambda tx: find_target(tx, target, "rollback"))

    def look(tx: Tx) -> tuple[Command, Asked]:
        drawn = Command(
            id=new_id(Kind.COMMAND),
            actor=actor(),
            verb="rollback",
            target=row.id,
            arguments=_until(to),
            created_at=tx.now(),
        )
        asked = load(tx, drawn)
        check(tx, drawn, asked)
        return drawn, asked

    drawn, asked = await at.home.store.read(look)
    repository = repositories(at.home)(asked.project)
    tip = await repository.tip(asked.plan.branch)
    landings = chosen(asked, drawn, await repository.steps(tip, since=asked.plan.base_sha))
    return tuple(task.key for task in undoes(asked, landings))


async def reviewed(at: Session, target: str, *, told: Told = UNHEARD) -> Decision:
    """Record that you have reviewed what a task, or every task of a plan, landed."""
    return await _decide(at, "reviewed", target, {}, told=told)


async def give_back(at: Session, task: str, *, told: Told = UNHEARD) -> Decision:
    """Give a task that you took over back to the agents, without your work."""
    return await _decide(at, "hand_back", task, {"drop": True}, told=told)


async def open_account(at: Session, name: str) -> Command:
    """Let the tasks continue that wait for an account: AGENT, AGENT/ACCOUNT or AGENT:MODEL."""
    return await send(at, "open", name, {})


async def check_another_attempt(
    at: Session, task: Task, *, agent: str | None = None, model: str | None = None
) -> tuple[str, ...]:
    """Refuse another attempt whose agent `run` would refuse; return warnings about a new agent."""
    # It loads every agent adapter, and most decisions need none.
    from loopwright.services.preflight.checks import keeping

    plan = await at.home.store.read(lambda tx: plan_of(tx, task))
    works = agent or task.agent
    check_another_try(plan, works, model or task.model)
    notes = keeping(at.settings, plan.policy, [works or plan.policy.agent], place="as the plan began")
    return notes if agent else ()


async def refuse_changed_checks(at: Session, task: Task) -> None:
    """Refuse another attempt at a task whose checks its source has changed."""
    # It loads every source, and most decisions need none.
    from loopwright.services.preflight.run_inputs import refuse_older_checks

    await refuse_older_checks(at.home.store, task)


def _check_agent(agent: str | None, model: str | None) -> None:
    if agent is not None:
        # It loads every agent adapter, and most decisions name none.
        from loopwright.services.preflight.checks import check_agent

        check_agent(agent, model, look_settings())


def _until(to: str | None) -> dict[str, Any]:
    return {"to": to} if to else {}


async def _decide(
    at: Session,
    verb: str,
    target: str | None,
    arguments: Mapping[str, Any],
    *,
    told: Told,
    continues: bool = False,
) -> Decision:
    """Carry a decision out; `continues` is whether the plan continues after it."""
    store = at.home.store
    row = await store.read(lambda tx: find_target(tx, target, verb))
    notes: tuple[str, ...] = ()
    if isinstance(row, Task) and verb in ("retry", "reject"):
        if verb == "retry":
            await refuse_changed_checks(at, row)
        notes = await check_another_attempt(
            at, row, agent=arguments.get("agent"), model=arguments.get("model")
        )
    limits = {name: arguments[name] for name in CAPS if name in arguments}
    if limits and isinstance(row, Plan):
        await store.read(lambda tx: check_new_limits(tx, plan_of(tx, row), limits))
    command = await send(at, verb, row.id, arguments)
    plan = await store.read(lambda tx: plan_of(tx, row))
    decision = Decision(
        command=command,
        about=row,
        plan=plan,
        notes=notes,
        needs_worker=continues and not await is_worked_on(at.home, plan.project_id),
    )
    told(decision)
    if not decision.needs_worker:
        await end_stopped_agents(at)
    return decision
