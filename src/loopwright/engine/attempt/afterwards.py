"""What becomes of an attempt when its agent has ended: judged, parked, handed on, or over."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loopwright.core.gates.gates import task_commands
from loopwright.core.policy.fallback import handed_on, meant
from loopwright.core.policy.retry import Failed, pause_until
from loopwright.core.policy.scopes import kept, strayed
from loopwright.core.replies.answers import Unreadable
from loopwright.core.replies.qa import TYPE
from loopwright.core.replies.questions import Asking
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Review, Role, Run, Task
from loopwright.core.values.failures import RULES, Failure, Level
from loopwright.core.values.states import AttemptState, RunState
from loopwright.engine.attempt.agent_runs import PAUSED, end_run, failure_of, is_over_budget, stop_over_budget
from loopwright.engine.attempt.answer_runs import is_answer, put_answer
from loopwright.engine.attempt.contradictions import has_had_its_turn
from loopwright.engine.attempt.leg_rows import Rows
from loopwright.engine.attempt.qa import report_of
from loopwright.engine.attempt.reviewing import take_in
from loopwright.engine.intake import doc_sync
from loopwright.engine.integrity.gate_scripts import inside
from loopwright.engine.money import quotas
from loopwright.engine.money.spending import is_reviewed_out
from loopwright.engine.processes.runs import Ended
from loopwright.engine.rows import questions
from loopwright.engine.rows.moves import MACHINE, cancel_attempt, fail_attempt, hand_on, move_attempt, need
from loopwright.engine.rows.ref_names import attempt_ref, commit_subject, trailers
from loopwright.engine.rows.world import World
from loopwright.ports import Tx, able

FORGOTTEN = "its conversation is gone: it goes on in a new one"
"""Why an attempt talks to its agent anew, with nothing but its workspace and its prompt."""

_NAMED = 20
"""So many paths outside of a task's scope are named in the event that tells of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Afterwards:
    """One run of an agent that is over, and the attempt that it belongs to."""

    world: World
    fence: int
    rows: Rows
    run: Run
    ended: Ended
    strayed: str
    """What it wrote where it must not, in words; empty when it did not."""
    asked: tuple[Asking, ...]
    resumed: bool = False
    """It was to go on with a conversation."""
    saved: dict[str, Any] = field(default_factory=dict)
    """What is written on the attempt whichever way it goes: where its work is kept."""

    async def go_on(self) -> bool:
        """Save the work whatever happened, then decide which way the attempt goes; say whether there is more to do."""
        reviews = self.run.role is Role.REVIEWER
        result = self.ended.result
        answered = await self._put_answer()
        refused = "" if reviews else await self._save()
        if is_over_budget(self.run, self.ended, self._can()):
            if await self.world.store.read(lambda tx: is_reviewed_out(tx, self.run, self.ended.over)):
                why = "it has cost as much as the reviews of its task may"
                return await self._is_over(
                    Failed(failure=Failure.BUDGET, detail=why, lasting=True), counts=False
                )
            return await self._over_budget()
        if self.ended.excess:
            return await self._is_over(failure_of(result, self.ended), counts=False)
        # "asked" without an interrupt of ours: a worker ended its agents in a hurry, before it could write it down.
        if self.ended.interrupted or (
            self.ended.exit.ended_by == "asked" and not (result and result.claimed)
        ):
            return await self._interrupted()
        if self.strayed and not (result is not None and result.failure and RULES[result.failure].parks):
            return await self._is_over(Failed(failure=Failure.STRAY_WRITE, detail=self.strayed), counts=True)
        if refused:
            detail = f"{refused}. Its own commits were not read; the files that it left are kept."
            return await self._is_over(Failed(failure=Failure.LINKED_GIT, detail=detail), counts=True)
        if self.asked:
            return await self._ask()
        if answered or (result is not None and result.claimed) or self._speaks_for_itself():
            return await self._claimed()
        failed = failure_of(result, self.ended)
        if RULES[failed.failure].parks and not (reviews and await self._decides()):
            goes_on = await self._wait(failed)
            if goes_on is not None:
                return goes_on
        if not reviews and self._is_forgotten(failed):
            goes_on = await self._begin_another_conversation(failed)
            if goes_on is not None:
                return goes_on
        if not reviews and has_had_its_turn(self.rows.attempt):
            # The work was finished before this turn: what the workspace holds is judged however the turn ended.
            return await self._claimed()
        is_its_fault = RULES[failed.failure].level is Level.ATTEMPT
        handed = not is_its_fault and handed_on(self.rows.task, failed.failure, self.rows.plan.policy)
        if handed and not reviews:
            return await self._hand_on(failed)
        return await self._is_over(failed, counts=is_its_fault)

    async def _decides(self) -> bool:
        """Return whether a review decides about contradicted checks: a person can do so too, so nobody waits for it."""
        review = await self.world.store.read(lambda tx: tx.get(Review, self.run.label))
        return bool(need(review, "the review").contradicted)

    def _can(self) -> frozenset[str]:
        agent = self.world.agent(self.run.agent or self.rows.attempt.agent)
        return able(agent, self.rows.plan.policy.agents.get(agent.name, {}))

    def _speaks_for_itself(self) -> bool:
        """Say whether there is work that is judged although its agent does not claim it.

        Where nothing checks the work, how the agent ended is all that is known of it.
        """
        result, plan, task = self.ended.result, self.rows.plan, self.rows.task
        if result is None or not result.by_work or task.type == TYPE or plan.policy.answer is not None:
            return False
        return bool(self.saved.get("touched")) and bool(task_commands(plan, task))

    async def _put_answer(self) -> bool:
        """Write down what a run says that is there to answer; say whether it can be judged."""
        answering, result = self.rows.plan.policy.answer, self.ended.result
        if answering is None or result is None or self.asked or not is_answer(result):
            return False
        await put_answer(self.world, self.rows, answering, result)
        return True

    async def _save(self) -> str:
        """Keep what the workspace holds; return what in its git dir leads elsewhere, in words."""
        rows = self.rows
        snapshot = await self.world.repository(rows.project).snapshot(
            Path(need(rows.attempt.workspace, "a workspace")),
            base_sha=need(rows.attempt.base_sha, "a base"),
            ref=attempt_ref(rows.attempt),
            subject=commit_subject(rows.task),
            trailers=trailers(rows.attempt, self.run),
            at=self.ended.exit.ended_at,
        )
        touched = kept(inside(rows.project.subfolder, path) for path in snapshot.changed)
        self.saved.update(tip_sha=snapshot.sha, agent_sha=snapshot.agent_sha, touched=touched)
        return snapshot.refused

    async def _over_budget(self) -> bool:
        def stop(tx: Tx) -> bool:
            return stop_over_budget(
                tx, self.world, self.rows.attempt, self.run, self.ended, fence=self.fence, **self.saved
            )

        return await self.world.store.transact("attempt.over_budget", stop)

    async def _interrupted(self) -> bool:
        """Keep the work and park the attempt, or end it when it was cancelled."""

        def park(tx: Tx) -> bool:
            end_run(tx, self.run, RunState.CANCELLED, self.ended)
            asked = self._current(tx).interrupt
            if self._is_cancelled(tx):
                return True
            # Where nobody asked for a pause in the rows, it goes on as soon as the loop runs.
            self._park(tx, interrupt="", wait_reason=PAUSED, wake_at=None if asked else tx.now())
            return False

        return await self.world.store.transact("attempt.interrupted", park)

    async def _ask(self) -> bool:
        """Let the attempt wait for a person's answer; its slot is free meanwhile."""

        def park(tx: Tx) -> bool:
            end_run(tx, self.run, RunState.AWAITING_RESPONSE, self.ended)
            attempt = self._current(tx)
            if self._is_cancelled(tx):
                return True
            questions.wait_for_answers(
                tx,
                self.world.ids,
                self.rows.plan,
                attempt,
                self.run,
                self.asked,
                fence=self.fence,
                **self.saved,
            )
            return False

        return await self.world.store.transact("attempt.asking", park)

    async def _claimed(self) -> bool:
        """Have the work judged; what a reviewer says is taken in."""
        if self.run.role is Role.REVIEWER:
            await take_in(self.world, self.rows, self.run, self.ended, None, fence=self.fence)
            return True
        if self.rows.task.type == TYPE:
            report = report_of(self.rows.plan, need(self.ended.result, "a result"))
            if isinstance(report, Unreadable):
                failed = Failed(failure=Failure.LOOK, detail=report.problem)
                return await self._is_over(failed, counts=True)
            # Whatever it changed is thrown away, and keeps nobody off.
            self.saved.update(qa=report, touched=())

        def checking(tx: Tx) -> None:
            moved = move_attempt(tx, self.rows.attempt, AttemptState.CHECKING, fence=self.fence, **self.saved)
            if outside := strayed(moved.touched, self.rows.task.scope):
                named, plan = list(outside[:_NAMED]), self.rows.plan
                tx.append(
                    happened("scope_left", MACHINE, plan=plan, attempt=moved, paths=named, count=len(outside))
                )
            result = self.ended.result
            unusable = Failure.CRASH if result is None else None if result.claimed else result.failure
            ended = RunState.ERROR if unusable else RunState.COMPLETE
            end_run(tx, self.run, ended, self.ended, failure=unusable)
            doc_sync.note(tx, self.rows.plan, moved, (result.last_words or result.summary) if result else "")

        await self.world.store.transact("attempt.checking", checking)
        return True

    async def _wait(self, failed: Failed) -> bool | None:
        """Let the attempt wait for the service, or end it when it was cancelled meanwhile.

        Return whether there is more to do now; None when it has waited often enough.
        """
        rows, rule = self.rows, RULES[failed.failure]
        calls = rows.task.call_failures + (not rule.closes)
        if calls > rows.plan.policy.max_call_retries:
            return None

        def park(tx: Tx) -> bool:
            self._end(tx, failed)
            if self._is_cancelled(tx):
                return True
            chance = self.world.chance()
            if rule.closes:
                waits = quotas.parked(tx, rows.attempt, self.run, failed)
            else:
                at = pause_until(rule, calls, now=tx.now(), retry_at=failed.retry_at, chance=chance)
                waits = {"wake_at": at, "wait_reason": failed.detail[:500] or rule.advice}
                tx.update(Task, rows.task.id, call_failures=calls)
            about = {"until": waits["wake_at"].isoformat(), "failure": failed.failure.value}
            self._park(tx, about=about, **waits)
            return False

        return await self.world.store.transact("attempt.waiting", park)

    async def _hand_on(self, failed: Failed) -> bool:
        """Let the next agent of the chain go on in the same workspace."""
        rows = self.rows

        def hand(tx: Tx) -> bool:
            self._end(tx, failed)
            current = self._current(tx)
            if self._is_cancelled(tx):
                return True
            task, because = hand_on(tx, rows.plan, rows.task, current, failed.failure)
            agent, model = meant(task, rows.plan.policy)
            self._park(
                tx,
                about={"agent": agent, "model": model, "because": because},
                agent=agent,
                model=model,
                account=None,
                stands_in=because,
                wake_at=tx.now(),
                wait_reason=because,
            )
            return False

        return await self.world.store.transact("attempt.handed_on", hand)

    def _is_forgotten(self, failed: Failed) -> bool:
        """Say whether the agent no longer has the conversation that it was to go on with: none began."""
        result = self.ended.result
        return (
            self.resumed and failed.failure is Failure.CRASH and result is not None and not result.session_ref
        )

    async def _begin_another_conversation(self, failed: Failed) -> bool | None:
        """Let the agent go on in the same workspace, told what was done and answered; None when that was tried before.

        Only its memory is gone: another attempt would throw the work away, and a person's answers with it.
        """

        def begin(tx: Tx) -> bool | None:
            runs = tx.find(Run, attempt_id=self.rows.attempt.id, role=self.run.role, failure=Failure.CRASH)
            if any(one.id != self.run.id for one in runs):
                return None
            self._end(tx, failed)
            if self._is_cancelled(tx):
                return True
            self._park(tx, about={"because": FORGOTTEN}, wake_at=tx.now(), wait_reason=FORGOTTEN)
            return False

        return await self.world.store.transact("attempt.forgotten", begin)

    async def _is_over(self, failed: Failed, *, counts: bool) -> bool:
        """End the attempt; what a reviewer could not do is no fault of it."""
        if self.run.role is Role.REVIEWER:
            await take_in(self.world, self.rows, self.run, self.ended, failed, fence=self.fence)
            return True

        def over(tx: Tx) -> None:
            self._end(tx, failed)
            fail(tx, self.world, self.rows.attempt, failed, fence=self.fence, counts=counts, **self.saved)

        await self.world.store.transact("attempt.failed", over)
        return True

    # --- what several of them do ---------------------------------------------------------------------

    def _current(self, tx: Tx) -> Attempt:
        return need(tx.get(Attempt, self.rows.attempt.id), "the attempt")

    def _is_cancelled(self, tx: Tx) -> bool:
        """End the attempt if a person asked for that meanwhile."""
        if self._current(tx).interrupt != "cancel":
            return False
        cancel_attempt(tx, self.rows.attempt, fence=self.fence, **self.saved)
        return True

    def _end(self, tx: Tx, failed: Failed) -> None:
        end_run(tx, self.run, RunState.ERROR, self.ended, failure=failed.failure, retry_at=failed.retry_at)

    def _park(self, tx: Tx, **changes: Any) -> None:
        move_attempt(tx, self.rows.attempt, AttemptState.WAITING, fence=self.fence, **changes, **self.saved)


def fail(
    tx: Tx, world: World, attempt: Attempt, failed: Failed, *, fence: int, counts: bool, **saved: Any
) -> None:
    """End an attempt, with advice for the next one."""
    fail_attempt(
        tx,
        world.ids,
        attempt,
        failed,
        fence=fence,
        counts=counts,
        chance=world.chance(),
        evidence=f"{RULES[failed.failure].advice}\n{failed.detail}",
        **saved,
    )
