"""The leg that finishes a plan: build the merge on the current base, check it, and only then move the branch."""

import asyncio
import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from loopwright.core.gates.gates import plan_commands
from loopwright.core.policy import finishing
from loopwright.core.policy.retry import backoff
from loopwright.core.receipts.model import render
from loopwright.core.rows.model import Attempt, Finish, Leg, Plan, Project, Role, Task
from loopwright.core.values.errors import (
    Busy,
    CannotRun,
    Denied,
    GitFailed,
    LeaseLost,
    MergeConflict,
    NoEnvironment,
    Refused,
    TookTooMuch,
    UserError,
)
from loopwright.core.values.findings import VerdictStatus
from loopwright.core.values.ids import short_id
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.states import OPEN_FINISH, FinishState, PlanState, TaskState
from loopwright.core.values.wording import to_type
from loopwright.engine.branch.changed_gate_files import Steered, steered
from loopwright.engine.branch.receipt import plan_receipt
from loopwright.engine.gates.held_out import judge_whole
from loopwright.engine.gates.judging import Judging
from loopwright.engine.memory.interrupts import Interrupted, Interrupts
from loopwright.engine.rows.finishes import mine, move_finish
from loopwright.engine.rows.legs import carry_on
from loopwright.engine.rows.moves import need
from loopwright.engine.rows.ref_names import beside
from loopwright.engine.rows.world import World
from loopwright.ports import Ends, Pick, Repository, Tx, Wanted

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What a leg works on."""

    finish: Finish
    plan: Plan
    project: Project
    tasks: tuple[Task, ...]
    """The tasks that are merged."""
    changed: Steered
    """Judging files that the plan's work changed."""
    repository: Repository
    ends: Ends

    @property
    def whole(self) -> bool:
        """Whether the plan is merged as it was verified."""
        return not self.finish.tasks

    @property
    def commands(self) -> tuple[GateCommand, ...]:
        """The commands that must pass on it."""
        return plan_commands(self.plan, self.acceptance)

    @property
    def acceptance(self) -> tuple[GateCommand, ...]:
        """The acceptance commands of the tasks."""
        return tuple(one for task in self.tasks for one in task.acceptance)


class FinishLeg:
    """Carries out the finish of a plan.

    If it is killed, another leg finds what was done and does the rest.
    """

    def __init__(self, world: World, leg: Leg, *, interrupts: Interrupts) -> None:
        self._world = world
        self._leg = leg
        self._interrupts = interrupts

    async def run(self) -> None:
        """Finish the plan, unless another worker does."""
        await carry_on(self._world, self._leg, self._interrupts, self._load, self._finish_or_tell)

    def _load(self, tx: Tx) -> tuple[Finish, Plan, Project, tuple[Task, ...], Steered] | None:
        finish = tx.get(Finish, self._leg.subject)
        if finish is None or finish.fence != self._leg.fence or finish.state not in OPEN_FINISH:
            return None
        plan = need(tx.get(Plan, finish.plan_id), "the plan")
        tasks = tx.find(Task, plan_id=plan.id, order_by=("position",))
        wanted = [task for task in tasks if not finish.tasks or task.id in finish.tasks]
        # The result does not contain cancelled tasks.
        wanted = [task for task in wanted if task.status is not TaskState.CANCELLED]
        project = need(tx.get(Project, plan.project_id), "the project")
        return finish, plan, project, tuple(wanted), steered(tx, plan.id)

    async def _finish_or_tell(
        self,
        finish: Finish,
        plan: Plan,
        project: Project,
        tasks: tuple[Task, ...],
        changed: Steered,
        interrupt: asyncio.Event,
    ) -> None:
        some = ",".join(task.key for task in tasks) if finish.tasks else False
        how = finish.how if finish.how != plan.policy.finish else False
        again = f"`{to_type('accept', short_id(plan.id), tasks=some, finish=how)}` tries again"
        try:
            repository = self._world.repository(project)
            work = _Work(
                finish=await self._with_receipt(finish),
                plan=plan,
                project=project,
                tasks=tasks,
                changed=changed,
                repository=repository,
                ends=await repository.ends(),
            )
            if finish.how == finishing.PULL_REQUEST:
                await self._to_forge(work, interrupt)
            else:
                await self._into_base(work, interrupt)
        except Interrupted:
            log.info("the end of a plan was interrupted", extra={"plan": plan.id})
        except MergeConflict as conflict:
            told = (
                f"it changes the same places as {plan.base_ref} does by now: {', '.join(conflict.paths[:10])}; "
                "nothing was moved"
            )
            way = (
                f"merge it yourself: git merge {plan.branch}"
                if not finish.tasks
                else "accept more tasks with it"
            )
            await self._refuse(told, way)
        except Refused as refused:
            await self._refuse(str(refused), "; ".join(filter(None, (refused.hint, again))))
        except (Denied, NoEnvironment, TookTooMuch) as denied:
            await self._refuse(f"the gate cannot run: {denied}", again)
        except Busy as busy:
            await self.break_off(str(busy), after_s=busy.after_s)
        except (CannotRun, GitFailed, UserError, OSError) as trouble:
            await self.break_off(str(trouble))

    async def break_off(self, reason: str, *, after_s: float | None = None) -> None:
        """Try again later after a problem that may pass, a bounded number of times."""

        def later(tx: Tx) -> None:
            finish = mine(tx, self._leg.subject, self._leg.fence)
            plan = need(tx.get(Plan, finish.plan_id), "the plan")
            calls = finish.call_failures + 1
            if calls > plan.policy.max_call_retries:
                told = f"{reason}\n`loopwright accept {short_id(plan.id)}` tries again"
                move_finish(tx, finish, FinishState.REFUSED, fence=self._leg.fence, detail=told)
                return
            pause = backoff(calls, chance=self._world.chance())
            wait = pause if after_s is None else max(pause, timedelta(seconds=after_s))
            tx.update(
                Finish, finish.id, call_failures=calls, not_before=tx.now() + wait, detail=reason[:2000]
            )

        await self._world.store.transact("finish.later", later)

    # --- into the base branch ------------------------------------------------------------------------

    async def _into_base(self, work: _Work, interrupt: asyncio.Event) -> None:
        base = work.plan.base_ref
        while True:
            tip = await work.ends.base_tip(base)
            if tip is None:
                raise Refused(
                    f"{base} is not a branch of {work.project.path}: nothing can be moved",
                    code="base_not_a_branch",
                    hint=f"merge the result yourself: git merge {work.plan.branch}",
                )
            finish = work.finish
            if finish.state is FinishState.LANDING:
                commit, target = need(finish.commit_sha, "a commit"), need(finish.target_sha, "a target")
                there = await work.ends.arrived(commit, base, since=target, key=finish.id)
                if there is not None:
                    await self._done(work, commit_sha=there)
                    return
                if tip == target and await self._moved(work, new=commit, old=target):
                    await self._done(work)
                    return
                work = replace(work, finish=await self._check_again(finish))
            else:
                work = replace(work, finish=await self._build(work, tip, interrupt))
                if work.finish.state is FinishState.FINISHED:
                    return

    async def _build(self, work: _Work, tip: str, interrupt: asyncio.Event) -> Finish:
        """Build the new base commit, check exactly that, and record it before anything moves."""
        finish, plan = work.finish, work.plan
        source, tree = await self._source(work, tip)
        if tree == await work.repository.tree_of(tip):
            told = f"nothing was left to do: {plan.base_ref} has all of it"
            return await self._done(
                work, source_sha=source, target_sha=tip, commit_sha=tip, tree=tree, told=told
            )
        message = finishing.message(plan, work.tasks, finish)

        async def commit(*, sign: bool = False) -> str:
            if finish.how == finishing.SQUASH:
                parents: tuple[str, ...] = (tip,)
            elif await work.repository.is_ancestor(tip, source):
                return source
            else:
                parents = (tip, source)
            return await work.ends.commit(
                tree, parents=parents, message=message, at=finish.created_at, sign=sign
            )

        draft = await commit()
        record_id = await self._gated(work, draft, tree, tip, interrupt)
        sign = plan.policy.finish_sign
        made = await commit(sign=True) if sign else draft
        return await self._landing(
            work,
            source_sha=source,
            target_sha=tip,
            commit_sha=made,
            tree=tree,
            verdict_id=record_id,
            # The result itself was made without a key.
            signed=sign and (made != source or not work.whole),
        )

    async def _source(self, work: _Work, tip: str) -> tuple[str, str]:
        """Return the commit to merge, and the merged tree."""
        if work.whole:
            source = need(work.plan.result_sha, "a result")
            return source, await work.ends.joined(tip, source)
        parents = await self._world.store.read(lambda tx: _landing_parents(tx, work.plan.id))
        picks = [
            Pick(
                sha=task.landed_sha,
                parent=parents[task.landed_sha],
                message=finishing.picked_message(work.plan, task, work.finish),
            )
            for task in sorted(
                work.tasks, key=lambda task: (task.completed_at or task.updated_at, task.position)
            )
            if task.landed_sha is not None
        ]
        # After a squash only their tree remains.
        sign = work.plan.policy.finish_sign and work.finish.how != finishing.SQUASH
        built = await work.ends.picked(tip, picks, at=work.finish.created_at, sign=sign)
        return built.sha, built.tree

    async def _gated(
        self, work: _Work, sha: str, tree: str, before: str, interrupt: asyncio.Event
    ) -> str | None:
        """Run the complete gate on a tree that is about to be merged, unless it already ran; raise if it fails."""
        plan = work.plan
        ask = Judging(
            project=work.project,
            plan=plan,
            attempt=None,
            role=Role.FINISH,
            sha=sha,
            tree=tree,
            commands=work.commands,
            still_mine=self._still_mine,
            before=before,
            exempt=work.changed.exempt,
            rewritten=work.changed.rewritten,
            own=work.acceptance,
        )
        whole = await judge_whole(self._world, work.repository, ask, work.tasks, interrupt)
        verdict = whole.verdict
        match verdict.status:
            case VerdictStatus.INCONCLUSIVE if verdict.lasting:
                raise Refused(
                    f"the gate could not run: {verdict.reason}; nothing was moved",
                    code="gate_did_not_run",
                    hint=f"fix that, then `loopwright accept {plan.id}`",
                )
            case VerdictStatus.INCONCLUSIVE:
                raise CannotRun(f"the gate could not run: {verdict.reason}")
            case VerdictStatus.UNVERIFIED if not plan.policy.allow_unverified:
                raise Refused(
                    "nothing is configured to check it", code="no_gates", hint="give the plan gates"
                )
            case VerdictStatus.FAILED:
                failing = [one.name for one in verdict.checks if one.status.value in ("failed", "error")]
                what = whole.told or ", ".join(failing[:5]) or verdict.reason or "the gate"
                raise Refused(
                    f"together with what {plan.base_ref} has by now, these checks fail: {what}; nothing was moved",
                    code="gate_failed",
                    hint=f"look at it: git merge --no-commit {plan.branch}"
                    if work.whole
                    else "accept more tasks with it",
                )
        return whole.record.id if whole.record else None

    async def _moved(self, work: _Work, *, new: str, old: str) -> bool:
        await self._world.store.read(self._still_mine)
        if not self._world.may_act():
            raise LeaseLost("the lease lapsed before the end of the plan")
        return await work.ends.move(work.plan.base_ref, new=new, old=old)

    # --- to a forge ----------------------------------------------------------------------------------

    async def _to_forge(self, work: _Work, interrupt: asyncio.Event) -> None:
        plan = work.plan
        address = await work.ends.remote(plan.policy.remote)
        if address is None:
            raise Refused(
                f"{work.project.path} has no git remote {plan.policy.remote!r} to push to",
                code="no_remote",
                hint="add it with `git remote add`, or set forge.remote to the one that you mean",
            )
        # Before anything is pushed: whether there is a forge at all, and a token for it.
        forge = self._world.forge(plan, address)
        branch = plan.branch if work.whole else beside(plan, work.finish.id)
        if work.finish.state is FinishState.CHECKING:
            work = replace(work, finish=await self._pushable(work, branch, interrupt))
        sha = need(work.finish.commit_sha, "a commit")
        await work.ends.push(plan.policy.remote, sha, branch)
        names = [command.command for command in work.commands]
        wanted = Wanted(
            branch=branch,
            base=plan.base_ref.removeprefix("refs/heads/").removeprefix(f"{plan.policy.remote}/"),
            title=finishing.subject(plan),
            body=finishing.request_body(plan, work.tasks, work.finish, gates=names),
        )
        request = await forge.request(wanted)
        await self._done(work, request_url=request.url, request_n=request.n)

    async def _pushable(self, work: _Work, branch: str, interrupt: asyncio.Event) -> Finish:
        """Record which commit is pushed: the verified result as it is, or the chosen tasks after a gate."""
        tip = work.plan.base_sha
        sha, tree = await self._source(work, tip)
        record_id = await self._gated(work, sha, tree, tip, interrupt)
        if not work.whole:
            await work.ends.keep(branch, sha)
        return await self._landing(
            work,
            source_sha=sha,
            target_sha=tip,
            commit_sha=sha,
            tree=tree,
            verdict_id=record_id,
            signed=work.plan.policy.finish_sign and not work.whole,
        )

    def _still_mine(self, tx: Tx) -> None:
        mine(tx, self._leg.subject, self._leg.fence)

    # --- rows ----------------------------------------------------------------------------------------

    async def _with_receipt(self, finish: Finish) -> Finish:
        """Store the receipt before anything is moved: its hash goes into the commit."""
        if finish.receipt_sha256 is not None:
            return finish
        text = render(await plan_receipt(self._world, finish.plan_id))

        def keep(tx: Tx) -> Finish:
            mine(tx, finish.id, self._leg.fence)
            return tx.update(
                Finish,
                finish.id,
                receipt=text,
                receipt_sha256=finishing.receipt_hash(text),
                updated_at=tx.now(),
            )

        return await self._world.store.transact("finish.receipt", keep)

    async def _landing(self, work: _Work, **facts: Any) -> Finish:
        about = {"commit": facts["commit_sha"], "tree": facts["tree"], "base": facts["target_sha"]}

        def landing(tx: Tx) -> Finish:
            plan = need(tx.get(Plan, work.plan.id), "the plan")
            if work.whole and (plan.status, plan.result_sha) != (PlanState.VERIFIED, work.plan.result_sha):
                raise Refused(
                    "the plan has more to do by now",
                    code="plan_unfinished",
                    hint="wait until it is verified again",
                )
            return move_finish(
                tx, work.finish, FinishState.LANDING, fence=self._leg.fence, about=about, **facts
            )

        return await self._world.store.transact("finish.landing", landing)

    async def _check_again(self, finish: Finish) -> Finish:
        return await self._world.store.transact(
            "finish.again",
            lambda tx: move_finish(tx, finish, FinishState.CHECKING, fence=self._leg.fence),
        )

    async def _done(self, work: _Work, *, told: str = "", **facts: Any) -> Finish:
        final = replace(work.finish, **facts)
        about = {
            "commit": final.commit_sha,
            "base": work.plan.base_ref,
            "request": final.request_url,
            "receipt_sha256": final.receipt_sha256,
            "tasks": {task.key: task.landed_sha for task in work.tasks[:500]},
        }
        detail = told or finishing.done_sentence(final, work.plan.base_ref)
        return await self._world.store.transact(
            "finish.done",
            lambda tx: move_finish(
                tx,
                work.finish,
                FinishState.FINISHED,
                fence=self._leg.fence,
                about=about,
                detail=detail,
                **facts,
            ),
        )

    async def _refuse(self, reason: str, way: str) -> None:
        def refuse(tx: Tx) -> None:
            finish = mine(tx, self._leg.subject, self._leg.fence)
            told = f"{reason}\n{way}"
            move_finish(tx, finish, FinishState.REFUSED, fence=self._leg.fence, detail=told[:4000])

        await self._world.store.transact("finish.refused", refuse)


def _landing_parents(tx: Tx, plan_id: str) -> dict[str, str]:
    """Return the base of each candidate: an attempt that landed just before a kill is not LANDED yet."""
    landed = tx.find(Attempt, plan_id=plan_id)
    return {
        one.candidate_sha: one.candidate_parent
        for one in landed
        if one.candidate_sha and one.candidate_parent
    }
