"""Bugs to plant in what only some plans have to do with."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.simulation.planted import Patches, bug

from loopwright.core.policy import decide, landing
from loopwright.core.policy import rounds as rules
from loopwright.core.replies.discoveries import Discovery, Noticed, key_for
from loopwright.core.rows.model import Plan, Run, Task
from loopwright.core.values.errors import GitFailed
from loopwright.core.values.states import DiscoveryState, HealingState, PlanState
from loopwright.engine.attempt import after_run, candidates, qa, rounds
from loopwright.engine.intake import doc_sync
from loopwright.engine.people import discoveries
from loopwright.engine.rows import failing, healing
from loopwright.engine.views import round_views
from loopwright.ports import PlannedTask, Tx

# --- discovered work -------------------------------------------------------------------------------------


@bug("what an agent came upon is made a task at once, without asking anybody", "discovery")
def discovered_work_not_asked_about() -> Patches:
    right = discoveries.note

    def note(tx: Tx, plan: Plan, run: Run, noticed: Sequence[Noticed]) -> None:
        right(tx, plan, run, noticed)
        tasks = tx.find(Task, plan_id=plan.id)
        current = tx.get(Plan, plan.id)
        if noticed and current is not None and current.status is PlanState.RUNNING:
            key = key_for(noticed[0].title, {one.key for one in tasks})
            item = PlannedTask(key=key, title=noticed[0].title)
            discoveries.add_task(
                tx,
                lambda kind: f"{kind}_{run.id}",
                plan,
                item,
                position=len(tasks),
                origin=discoveries.ORIGIN,
            )

    return ((discoveries, "note", note),)


@bug("of the same work that several tasks came upon, only one is decided", "discovery")
def same_work_decided_apart() -> Patches:
    def decided(
        tx: Tx, found: Discovery, target: DiscoveryState, actor: str, *, task: Any = None, became: str = ""
    ) -> None:
        discoveries._decided(tx, found, target, actor, task=task, became=became)

    return ((discoveries, "_all_decided", decided),)


@bug("what a run came upon is forgotten unless it claims to be done", "discovery")
def only_claims_are_listened_to() -> Patches:
    right = discoveries.with_discovered

    def with_discovered(world: Any, spec: Any, ended: Any) -> Any:
        heard = right(world, spec, ended)
        done = ended.result is not None and ended.result.claimed
        return heard if done else replace(heard, discovered=())

    return ((discoveries, "with_discovered", with_discovered),)


# --- healing ---------------------------------------------------------------------------------------------


@bug("a healing step that did not help is tried again", "heal", "agent_lies")
def step_tried_again() -> Patches:
    right = healing.next_step

    def next_step(plan: Plan, task: Task, found: Any, done: Any) -> Any:
        return right(plan, task, found, set())

    return ((healing, "next_step", next_step),)


@bug("a healing step counts as a success as soon as it gives the task another attempt", "heal", "agent_lies")
def healed_too_early() -> Patches:
    right = healing.begin

    def begin(tx: Tx, ids: Any, plan: Plan, task: Task, *rest: Any, **more: Any) -> Any:
        begun = right(tx, ids, plan, task, *rest, **more)
        if begun is not None:
            healing.end(tx, plan, task, begun[0], HealingState.HEALED)
        return begun

    return ((healing, "begin", begin),)


@bug("tasks are healed although nobody switched that on", "agent_lies")
def healed_unasked() -> Patches:
    def may_heal(plan: Plan, task: Task, failed: Any) -> bool:
        return plan.policy.answer is None

    return ((failing, "may_heal", may_heal),)


# --- loops over a prompt ---------------------------------------------------------------------------------


@bug("every round of a loop begins with the branch, and what an unfinished one left is forgotten", "rounds")
def round_begun_anew() -> Patches:
    return ((rounds, "carried", lambda *_: None),)


@bug("a loop goes on to its verification, and nobody writes down what stopped it", "rounds")
def end_of_rounds_not_told() -> Patches:
    return ((rounds, "note_end", lambda *_: None),)


@bug("rounds that landed are not counted", "rounds")
def landed_rounds_not_counted() -> Patches:
    def left(task: Task) -> int:
        return task.max_attempts - task.attempts

    return ((round_views, "left", left), (rounds, "left", left))


@bug("a loop goes on however often a round changes nothing", "rounds")
def unchanged_rounds_go_on() -> Patches:
    return ((rules, "unchanged", lambda *_: 0),)


@bug("a round that sleeps begins although the time of its loop is over", "rounds")
def time_not_looked_at() -> Patches:
    def never(*_: Any, **__: Any) -> bool:
        return False

    return ((rules, "is_late", never), (rounds, "is_late", never), (decide, "is_late", never))


@bug("a git that fails once is taken for one that has lost what a round left", "rounds", "git_trouble")
def trouble_taken_for_loss() -> Patches:
    return ((rounds, "CommitGone", GitFailed),)


# --- looks at the whole, and documents -------------------------------------------------------------------


@bug("what the gate finds is enough for a look, whatever its agent reports", "look")
def report_not_read() -> Patches:
    right = qa.with_fixes

    def by_gate(issues: Any, *rest: Any) -> Any:
        return right([one for one in issues if one.by_gate], *rest)

    # What was found stays on the attempt: only nothing follows from it.
    return ((qa, "with_fixes", by_gate), (qa, "replace", lambda row, **_changes: row))


@bug("a look is taken again at once, beside the tasks that mend what it found", "look")
def fixes_not_waited_for() -> Patches:
    right = qa.move_task

    def move(tx: Tx, task: Task, *rest: Any, **more: Any) -> Task:
        more.pop("depends_on", None)
        more.pop("unmet", None)
        return right(tx, task, *rest, **more)

    return ((qa, "move_task", move),)


@bug("a look finds the same again and again, and nobody counts", "look")
def looks_not_counted() -> Patches:
    return ((qa, "rounds", lambda _reports: 0),)


@bug("what an agent changes while it looks at the whole lands like any work", "look")
def look_lands() -> Patches:
    right = after_run.move_attempt

    def move(tx: Tx, row: Any, goal: Any, *rest: Any, **more: Any) -> Any:
        return right(tx, row, goal, *rest, **{**more, "qa": None} if "qa" in more else more)

    return ((after_run, "move_attempt", move),)


@bug("a plan is verified whatever became of the documents that have to follow", "documents")
def documents_not_waited_for() -> Patches:
    async def due(*_: Any) -> tuple[str, ...]:
        return ()

    return ((doc_sync, "due", due),)


# --- contradicted checks -----------------------------------------------------------------------------------


@bug("work that contradicts a check lands by the agent's own word", "contradiction")
def contradiction_not_asked_about() -> Patches:
    def settled(_found: Any, old: Any) -> Any:
        checks = old.checks
        return replace(old.files, contradicted=checks, allowed_by=("the agent",) * len(checks))

    return ((landing, "_settled", settled),)


@bug("a decision about contradicted checks is forgotten and asked again", "contradiction")
def decision_forgotten() -> Patches:
    right = candidates.decisions

    def decisions(*given: Any) -> Any:
        return replace(right(*given), answers=())

    return ((candidates, "decisions", decisions),)
