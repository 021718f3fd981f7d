"""Bugs to plant: each is small, each breaks a promise, and the simulation has to find every one of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from tests.simulation import area_bugs
from tests.simulation import target as sim_target
from tests.simulation.planted import PLANTED, Bug, Patches, bug
from tests.simulation.trouble import effect

from loopwright.core.policy import budget, decide, landing, quotas
from loopwright.core.policy.retry import Failed
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Plan, Review, Run, Task, VerdictRecord
from loopwright.core.rows.waiting_rows import Envelope, Question
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.states import (
    AttemptState,
    EnvelopeState,
    QuestionState,
    ReviewState,
    RunState,
    TaskState,
)
from loopwright.engine.attempt import after_run, agent_runs, attempt, candidates, cleanup, land
from loopwright.engine.gates import gate_runs, held_out
from loopwright.engine.memory import slots
from loopwright.engine.money import quotas as accounts
from loopwright.engine.money import spending
from loopwright.engine.people import handover
from loopwright.engine.plans import finish, rollback, verify
from loopwright.engine.rows import failing, finishes, moves, questions, reservations
from loopwright.engine.worker import advance, leases, reconcile, worker
from loopwright.ports import Tx


@bug("work lands before a reviewer has looked at it")
def review_not_waited_for() -> Patches:
    right = landing.judge_candidate

    def judge(found: landing.Found) -> Any:
        decision = right(found)
        asked = isinstance(decision, landing.AskReviewer) and not decision.contradicted
        return landing.Land(files=found.files) if asked else decision

    return ((candidates, "judge_candidate", judge),)


@bug("the review of another change of the same task is enough", "take_back")
def any_review_will_do() -> Patches:
    right = candidates.decisions

    def decisions(tx: Tx, landed: Any, patch_: Any) -> landing.Decided:
        known = tx.find(Review, task_id=landed.task.id, state=ReviewState.CLEAR)
        decided = right(tx, landed, patch_)
        return replace(decided, reviews=tuple(known)) if known else decided

    return ((candidates, "decisions", decisions),)


@bug("an attempt lands although it was not looked for on the branch first")
def no_search_before_landing() -> Patches:
    async def landed(
        self: Any, branch_tip: str, *, since: str, task_id: str, among: Any, reverts: Any
    ) -> None:
        await self._do("landed")

    return ((sim_target.SimRepository, "landed", landed),)


@bug("git moves the branch whatever stands there")
def no_compare_and_swap() -> Patches:
    async def advance_branch(self: Any, branch: str, *, new: str, old: str) -> bool:
        await self._do("advance")
        self._watch("landed", {"branch": branch, "new": new, "old": self._target.refs[branch]})
        self._target.refs[branch] = new
        await self._done("advance")
        return True

    return ((sim_target.SimRepository, "advance", advance_branch),)


@bug("a leg that was taken over goes on writing")
def fence_ignored() -> Patches:
    right_move, right_change = moves.move_attempt, moves.change_attempt

    def move(tx: Tx, row: Attempt, goal: AttemptState, actor: str = "loopwright", **more: Any) -> Attempt:
        return right_move(tx, row, goal, actor, **{**more, "fence": None})

    def change(tx: Tx, attempt_id: str, fence: int, **changes: Any) -> Attempt:
        current = tx.get(Attempt, attempt_id)
        return right_change(tx, attempt_id, current.fence if current else fence, **changes)

    return (
        (moves, "move_attempt", move),
        (failing, "move_attempt", move),
        (after_run, "move_attempt", move),
        (land, "move_attempt", move),
        (attempt, "change_attempt", change),
    )


@bug("waiting for the quota is counted as an attempt", "usage_limit")
def quota_wait_counts() -> Patches:
    right = moves.move_attempt

    def move(tx: Tx, row: Attempt, goal: AttemptState, *rest: Any, **more: Any) -> Attempt:
        if goal is AttemptState.WAITING and more.get("wake_at") is not None:
            task = tx.get(Task, row.task_id)
            assert task is not None
            tx.update(Task, task.id, attempts=task.attempts + 1)
        return right(tx, row, goal, *rest, **more)

    return ((after_run, "move_attempt", move),)


@bug("a worker believes in its lease for longer than the others do")
def lease_released_late() -> Patches:
    return ((leases, "_SAFETY", 1.6),)


@bug("two workers may take control at once")
def control_taken_without_asking() -> Patches:
    def claim(self: Any, tx: Tx) -> bool:
        tx.update(leases.Worker, self.worker.id, controls=True)
        return True

    async def controls(self: Any, _holder: Any) -> bool:
        if self._membership.exclusive:
            return True
        return bool(await self._store.transact("worker.controls", self._claim))

    return ((leases.Lease, "_claim", claim), (leases.Lease, "controls", controls))


@bug("the agent's word is taken for a verdict")
def claim_is_believed() -> Patches:
    async def judge(*_: Any) -> tuple[None, Verdict]:
        return None, Verdict(status=VerdictStatus.PASSED)

    return ((candidates, "judge_until_known", judge),)


@bug("a verdict on another tree is taken for this one's")
def verdict_of_another_tree() -> Patches:
    right = gate_runs.judge

    async def judge(world: Any, repository: Any, ask: Any, interrupt: Any) -> Any:
        def look(tx: Tx) -> list[VerdictRecord]:
            found = tx.find(VerdictRecord, plan_id=ask.plan.id)
            return [one for one in found if one.verdict.status is VerdictStatus.PASSED]

        known = await world.store.read(look)
        return (known[0], known[0].verdict) if known else await right(world, repository, ask, interrupt)

    return ((candidates, "judge_until_known", judge), (held_out, "judge", judge))


@bug("the gated commit is landed although the branch moved meanwhile")
def landed_on_a_moved_branch() -> Patches:
    async def swap(landing: Any, tip: str) -> None:
        new = landing.attempt.candidate_sha
        now = await landing.repository.tip(landing.plan.branch)
        if await landing.repository.advance(landing.plan.branch, new=new, old=now):
            await land._record_landed(landing, new)

    return ((land, "_swap", swap),)


@bug("a workspace is removed before its work is saved")
def removed_before_saved() -> Patches:
    async def tidy_at_once(world: Any, project: Any, plan: Plan, row: Attempt) -> None:
        if row.cleaned_at is None:
            if row.workspace is not None:
                await world.repository(project).remove_workspace(cleanup.Path(row.workspace))
            await cleanup._mark(world, plan, row, row.tip_sha)

    return ((attempt, "tidy_attempt", tidy_at_once), (reconcile, "tidy_attempt", tidy_at_once))


@bug("a snapshot is committed but not pinned")
def snapshot_not_pinned() -> Patches:
    right = sim_target.SimRepository.snapshot

    async def snapshot(self: Any, path: Any, **more: Any) -> Any:
        before = dict(self._target.refs)
        made = await right(self, path, **more)
        if more["ref"] not in before:
            del self._target.refs[more["ref"]]
        await effect(self._trouble, "git.snapshot.unpinned")
        return made

    return ((sim_target.SimRepository, "snapshot", snapshot),)


@bug("what is under way is not counted before more is begun")
def busy_slots_forgotten() -> Patches:
    return ((advance, "_room", lambda _tx, world: (world.me.slots, None)),)


@bug("an agent that is ready does not wait for a free slot")
def slot_not_waited_for() -> Patches:
    async def take(self: Any, leg: Any, turn: Any, **_more: Any) -> Any:
        return self.take_now(leg.subject, turn.plan_id)

    return ((slots.AgentSlots, "take", take),)


@bug("an agent that waited for its slot starts whatever was said meanwhile", "pause")
def pause_not_looked_at_again() -> Patches:
    return ((agent_runs, "_is_held_back", lambda *_: False),)


@bug("the budget is looked at by nobody", "budget")
def budget_ignored() -> Patches:
    return (
        (decide, "over_budget", lambda _plan: None),
        (agent_runs, "over_budget", lambda _plan: None),
        (budget, "caps", lambda *_, **_more: ()),
    )


@bug("a failed verification is tried again by the machine", "gate_flakes")
def verify_run_again() -> Patches:
    def over(self: Any, tx: Tx, whole: Any, *rest: Any) -> None:
        verdict = whole.verdict
        if verdict.status is VerdictStatus.PASSED:
            right(self, tx, whole, *rest)
        else:
            self._back(tx, verdict.reason)

    right = verify.VerifyLeg._over
    return ((verify.VerifyLeg, "_over", over),)


@bug("a plan is called VERIFIED by the verdict on one of its tasks")
def verified_by_a_task() -> Patches:
    async def judge(world: Any, _repository: Any, ask: Any, _interrupt: Any) -> Any:
        known = await world.store.read(lambda tx: tx.find(VerdictRecord, plan_id=ask.plan.id, tree=ask.tree))
        return known[0], known[0].verdict

    return ((held_out, "judge", judge),)


@bug("the runs of an attempt that ends are left open", "gone")
def runs_left_open() -> Patches:
    def nothing(*_args: Any, **_more: Any) -> None:
        """Leave them open."""

    return ((moves, "end_open_runs", nothing), (failing, "end_open_runs", nothing))


@bug("an agent that is still running is not looked for after a restart", "crash")
def agent_not_adopted() -> Patches:
    right = attempt.AttemptLeg._work

    async def work(self: Any, rows: Any, interrupt: Any) -> bool:
        def current(tx: Tx) -> Run | None:
            return tx.get(Run, rows.attempt.run_id)

        run = await self._world.store.read(current)
        if run is not None and run.state is RunState.RUNNING:
            made = await self._next_run(rows)
            rows = replace(rows, attempt=replace(rows.attempt, run_id=made.id))
        return await right(self, rows, interrupt)

    return ((attempt.AttemptLeg, "_work", work),)


@bug("what waits at its landing is not picked up again")
def landing_not_reconciled() -> Patches:
    return ((reconcile, "DRIVEN", reconcile.DRIVEN - {AttemptState.LANDING, AttemptState.CHECKING}),)


@bug("a lost machine's attempts are waited for without an end", "gone")
def lost_host_waited_for() -> Patches:
    return ((reconcile, "_attempts_of_lost_hosts", lambda _tx: []),)


@bug("a task's dependents are let go when it fails")
def dependents_let_go_early() -> Patches:
    right = failing.fail_attempt

    def fail(tx: Tx, ids: Any, row: Attempt, failed: Failed, **more: Any) -> Task:
        task = right(tx, ids, row, failed, **more)
        for other in task.dependents:
            dependent = tx.get(Task, other)
            assert dependent is not None
            tx.update(Task, other, unmet=max(0, dependent.unmet - 1))
        return task

    return ((after_run, "fail_attempt", fail), (land, "fail_attempt", fail), (worker, "fail_attempt", fail))


@bug("a command is carried out again after every restart")
def command_not_answered() -> Patches:
    right = worker.commands._answer

    def answer(tx: Tx, command: Any, state: Any, result: str, event: str) -> Any:
        if command.verb == "pause":
            return command
        return right(tx, command, state, result, event)

    return ((worker.commands, "_answer", answer),)


@bug("nobody tells those who wait for the budget that some of it is free", "budget")
def freed_budget_not_told() -> Patches:
    return ((moves, "freed", lambda *_: None),)


@bug("an agent waits for the budget in its leg, which keeps a place of its worker", "budget")
def leg_kept_for_the_budget() -> Patches:
    right = attempt.start_run

    async def start(world: Any, rows: Any, run: Run, *, fence: int) -> Any:
        def waits(tx: Tx) -> bool:
            plan = moves.need(tx.get(Plan, run.plan_id), "the plan")
            if run.state is not RunState.QUEUED or not spending.has_to_wait(tx, world, plan, run):
                return False
            moves.change_attempt(tx, rows.attempt.id, fence, wait_reason=budget.WAITS)
            return True

        while await world.store.transact("budget.wait", waits):
            await world.store.changed(5.0)
        return await right(world, rows, run, fence=fence)

    return ((attempt, "start_run", start),)


@bug("more and more is begun that can only wait for the budget", "budget")
def queue_for_the_budget() -> Patches:
    return ((decide, "WAITS", "nobody says this"),)


# --- questions -------------------------------------------------------------------------------------------


@bug("each run asks for its permission anew, although another one waits for the same", "permission")
def permission_asked_twice() -> Patches:
    return ((questions, "_same", lambda *_: None),)


@bug("a yes to one run holds for every run")
def yes_for_everybody() -> Patches:
    return ((questions, "_holds", lambda *_: True),)


@bug("a permission that nobody answered in time is taken for given", "permission")
def silence_is_a_yes() -> Patches:
    right = questions.overdue

    def overdue(tx: Tx, row: Attempt) -> str:
        for one in questions.of_attempt(tx, row):
            late = one.deadline is not None and one.deadline <= tx.now()
            if one.state is QuestionState.OPEN and one.kind == "permission" and late:
                questions.move_question(
                    tx, one, QuestionState.ANSWERED, questions.MACHINE, answer=questions.YES
                )
        return right(tx, row)

    return ((questions, "overdue", overdue),)


@bug("whoever resumes a loop wakes those that wait for an answer, too", "pause")
def woken_without_an_answer() -> Patches:
    return ((questions, "open_of", lambda *_: []),)


@bug("an answer reaches only the one that asked first", "permission")
def answer_for_the_first_alone() -> Patches:
    right = questions._wake

    def wake(tx: Tx, question: Question) -> int:
        return right(tx, replace(question, asked_by=question.asked_by[:1]))

    return ((questions, "_wake", wake),)


@bug("a question that is answered can be answered again")
def answered_again() -> Patches:
    def answer(tx: Tx, _ids: Any, command: Any) -> str:
        asked = questions.need(tx.get(Question, command.target), "the question")
        text = questions._checked(asked, str(command.arguments.get("answer") or ""))
        tx.update(Question, asked.id, state=QuestionState.ANSWERED, answer=text, answered_by=command.actor)
        tx.update(Question, asked.id, answered_at=tx.now())
        return str(questions._wake(tx, asked))

    return ((worker.commands, "VERBS", {**worker.commands.VERBS, "answer": answer}),)


@bug("an attempt that asks keeps its slot until it has its answer")
def slot_kept_for_the_answer() -> Patches:
    right = attempt.AttemptLeg._work

    async def work(self: Any, rows: Any, *rest: Any) -> bool:
        goes_on = await right(self, rows, *rest)
        after = await self._rows()
        if after is not None and after.attempt.state is AttemptState.WAITING and after.attempt.questions:
            self._slots.take_now(rows.attempt.id, slots.Use(rows.plan.id))
        return goes_on

    return ((attempt.AttemptLeg, "_work", work),)


@bug("whoever takes up a running agent settles anew what it may do", "permission", "crash")
def permissions_not_kept() -> Patches:
    right = agent_runs.move_run

    def move(tx: Tx, run: Run, state: RunState, **changes: Any) -> Run:
        return right(tx, run, state, **{**changes, "permissions": None})

    return ((agent_runs, "move_run", move),)


# --- accounts --------------------------------------------------------------------------------------------


@bug("a closed account whose time is over lets everybody through at once", "usage_limit")
def everybody_probes() -> Patches:
    def may_probe(self: Any, envelope: Envelope) -> bool:
        return envelope.until is None or envelope.until <= self._now

    return ((quotas.Admission, "_may_probe", may_probe),)


@bug("an agent that was ready starts although its account has closed meanwhile", "auth")
def account_not_looked_at_again() -> Patches:
    return ((agent_runs.quotas, "admit", lambda *_args, **_more: True),)


@bug("every task that meets a closed account raises the alarm", "auth")
def an_alert_for_every_task() -> Patches:
    right = accounts.settle_account

    def settle(tx: Tx, run: Run, report: accounts.AccountReport, *, chance: float) -> None:
        before = tx.get(Envelope, quotas.envelope_id(run.agent or ""))
        right(tx, run, report, chance=chance)
        if report.refused and before is not None and before.state is EnvelopeState.CLOSED:
            tx.append(happened("envelope_closed", "loopwright", envelope=before.id, agent=before.agent))

    return ((accounts, "settle_account", settle),)


@bug("any run that ends opens its account, also one that began before it closed", "auth")
def opened_by_anybody() -> Patches:
    right = accounts.settle_account

    def settle(tx: Tx, run: Run, report: accounts.AccountReport, *, chance: float) -> None:
        right(tx, run, report, chance=chance)
        if report.answered and tx.get(Envelope, quotas.envelope_id(run.agent or "")) is not None:
            accounts.open_again(tx, quotas.envelope_id(run.agent or ""))

    return ((accounts, "settle_account", settle),)


# --- what people decide ----------------------------------------------------------------------------------


@bug("a landing that was taken back still counts as landed", "take_back")
def taken_back_counts_as_landed() -> Patches:
    async def landed(
        self: Any, branch_tip: str, *, since: str, task_id: str, among: Any, reverts: Any
    ) -> str | None:
        await self._do("landed")
        for commit in self._target.line(branch_tip, since):
            if commit.trailers is not None and commit.trailers.task == task_id:
                return str(commit.sha)
        return None

    return ((sim_target.SimRepository, "landed", landed),)


@bug("work is taken back without a look at what stays", "take_back")
def nobody_judges_what_stays() -> Patches:
    async def gate(*_args: Any) -> None:
        return None

    return ((rollback.Decision, "_gate", gate),)


@bug("what a person hands back lands without its gate", "take_over")
def handed_back_lands_ungated() -> Patches:
    right = candidates.judge_until_known

    async def judge(world: Any, repository: Any, ask: Any, interrupt: Any) -> Any:
        if ask.attempt is not None and ask.attempt.agent == handover.HUMAN:
            return None, Verdict(status=VerdictStatus.PASSED)
        return await right(world, repository, ask, interrupt)

    return ((candidates, "judge_until_known", judge),)


@bug("a task that a person has taken over is started all the same", "take_over")
def taken_over_is_started() -> Patches:
    right = advance._ready

    def ready(tx: Tx, plan: Plan, room: int, *, closed: bool) -> tuple[Task, ...]:
        queued = tx.find(Task, plan_id=plan.id, status=TaskState.QUEUED, unmet=0)
        return (*right(tx, plan, room, closed=closed), *(one for one in queued if one.taken_by))

    return ((advance, "_ready", ready),)


# --- money -----------------------------------------------------------------------------------------------


@bug("what running agents may still cost is not kept free for them", "budget")
def nothing_is_reserved() -> Patches:
    right = spending.caps

    def caps(tx: Tx, world: Any, plan: Plan, run: Run, **more: Any) -> Any:
        return tuple(replace(one, reserved=0, expected=0) for one in right(tx, world, plan, run, **more))

    return ((spending, "caps", caps),)


@bug("what running agents will probably cost is not kept free for them", "budget")
def nothing_is_expected() -> Patches:
    return ((reservations, "expected", lambda costs, *, least: 0),)


@bug("nobody looks at what an agent has cost while it works", "budget")
def cost_not_watched() -> Patches:
    async def is_over(_self: Any) -> bool:
        return False

    return ((spending.SpendingWatch, "is_over", is_over),)


@bug("a run that asked is charged when it asks, and again when it is answered")
def charged_twice() -> Patches:
    right = advance.move_run

    def move(tx: Tx, run: Run, state: RunState, **changes: Any) -> Run:
        if run.state is RunState.AWAITING_RESPONSE:
            moves._charge(tx, run)
        return right(tx, run, state, **changes)

    return ((advance, "move_run", move),)


# --- the end of a plan -----------------------------------------------------------------------------------


@bug("what goes into the user's branch is not gated together with what is there by now")
def end_not_gated() -> Patches:
    async def gated(*_args: Any, **_more: Any) -> None:
        return None

    return ((finish.FinishLeg, "_gated", gated),)


@bug("an end whose worker was killed is not taken up by another one", "crash")
def end_not_taken_up() -> Patches:
    right = finishes.due
    return ((finishes, "due", lambda tx: [one for one in right(tx) if one.leg == 0]),)


MORE_BUGS = (area_bugs,)
"""Modules that register theirs when they are imported."""
BUGS: Final[Mapping[str, Bug]] = {one.name: one for one in PLANTED}
