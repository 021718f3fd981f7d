"""Build a candidate, and collect step by step what `core.policy.landing` needs for a decision."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from loopwright.core.gates.contradictions import KIND, has_had_its_turn
from loopwright.core.gates.gates import task_commands
from loopwright.core.gates.held_out import held_commands, held_files
from loopwright.core.gates.verdict_reuse import names_all
from loopwright.core.gates.verdicts import evidence, keep_start
from loopwright.core.policy.landing import (
    Alone,
    Decided,
    Decision,
    Found,
    Objection,
    Want,
    base_taken_back,
    conflict_at,
    early_objections,
    judge_candidate,
)
from loopwright.core.policy.rounds import loops
from loopwright.core.rows.model import Attempt, Plan, Review, Role, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.errors import CommitGone, MergeConflict
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.patches import Patch
from loopwright.core.values.states import QuestionState, ReviewState, RunState
from loopwright.engine.attempt.landing_line import Landing
from loopwright.engine.attempt.red_proof import red_proof
from loopwright.engine.attempt.reviewing import author_of
from loopwright.engine.attempt.rounds import settles
from loopwright.engine.branch.receipt import landing_trailer
from loopwright.engine.gates.gate_runs import judge, judge_until_known
from loopwright.engine.gates.judging import Judging
from loopwright.engine.intake.doc_sync import left_behind
from loopwright.engine.integrity.gate_scripts import inside, judges_of
from loopwright.engine.integrity.old_checks import OldChecks, with_old_checks
from loopwright.engine.integrity.suspicion import leading_out
from loopwright.engine.people.handover import HUMAN
from loopwright.engine.processes.redaction import without_secrets
from loopwright.engine.rows.moves import need
from loopwright.engine.rows.ref_names import commit_subject, taken_ref, trailers
from loopwright.engine.rows.world import World
from loopwright.engine.sources.status_writeback import booked, touched_books
from loopwright.ports import Candidate, Repository, Step, Tx

# Conflicts with work that landed first: the evidence for the next attempt, so that it can combine both.
#
# Loopwright never resolves a conflict by choosing a side. The next attempt starts from what
# landed, sees both changes, and resolves the conflict itself.

_COMMITS: Final = 20
_FILES: Final = 20
_THEIRS: Final = 6_000
_OWN: Final = 6_000
_PLACES: Final = 3_000
_NAMES: Final = 2_000
_FOUND: Final = 4_000


async def told_of_conflict(
    world: World, repository: Repository, plan: Plan, attempt: Attempt, tip: str, conflict: MergeConflict
) -> str:
    """Return the evidence of a textual conflict: what landed at these places, and what the attempt did there."""
    base, mine = need(attempt.base_sha, "a base"), need(attempt.tip_sha, "a snapshot")
    landed = await _landed(repository, tip, base)
    there = [one for one in landed if set(one.paths) & set(conflict.paths)] or landed
    parts = [
        f"It changes the same places as work that landed since it began: {_named(conflict.paths)}",
        await _listed(world, there),
        "What landed there since the attempt began:\n"
        + await repository.difference(base, tip, paths=conflict.paths, limit=_THEIRS),
        await _own(repository, base, mine),
        "The places that collide, as git sees them (the first side is what landed, the second the attempt):\n"
        + conflict.detail[:_PLACES],
        "Your workspace has what landed. Do the task again on top of it, so that both hold; drop neither side.",
    ]
    return _clean(world, plan, attempt, parts)


async def told_of_red(
    world: World, repository: Repository, ask: Judging, verdict: Verdict, interrupt: asyncio.Event
) -> tuple[bool, str]:
    """Return whether an attempt that fails its checks passes them alone, and the evidence.

    Only other work that landed since it began can cause that, so nothing runs if nothing landed.
    """
    attempt = need(ask.attempt, "an attempt")
    base, mine = need(attempt.base_sha, "a base"), need(attempt.tip_sha, "a snapshot")
    if base == ask.before or ask.before is None:
        return False, evidence(verdict)
    landed = await _landed(repository, ask.before, base)
    alone = by_itself(ask, sha=mine, tree=await repository.tree_of(mine), before=base)
    _, found = await judge(world, repository, alone, interrupt)
    passes = found.status is VerdictStatus.PASSED
    parts = [evidence(verdict, limit=_FOUND)]
    if passes:
        alone_it_passes = "Alone, on the commit that it began with, the attempt passes every check."
        parts.insert(0, f"{alone_it_passes} Together with what landed since then it does not:")
    parts.append(await _listed(world, landed))
    if passes:
        parts.append(await _own(repository, base, mine))
        parts.append("Your workspace has what landed. Do the task again on top of it, so that both hold.")
    return passes, _clean(world, ask.plan, attempt, parts)


def by_itself(ask: Judging, *, sha: str, tree: str, before: str) -> Judging:
    """Return the same question about an attempt without what landed since it began."""
    return replace(ask, sha=sha, tree=tree, before=before)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Landed:
    """A commit that landed since, and its changes."""

    step: Step
    paths: tuple[str, ...]


async def _landed(repository: Repository, tip: str, base: str) -> list[_Landed]:
    """Return the newest commits since `base`, the oldest of them first."""
    steps = await repository.steps(tip, since=base, most=_COMMITS)
    return [
        _Landed(step=one, paths=await repository.changed(one.parent, one.sha))
        for one in reversed(steps)
        if one.parent
    ]


async def _listed(world: World, landed: Sequence[_Landed]) -> str:
    """Describe what landed: the task, the commit, and the files."""
    ids = [task_id for one in landed for task_id in one.step.tasks]

    def landings(tx: Tx) -> dict[str | None, Task]:
        tasks = {task.id: task for task in tx.find(Task, id=ids)} if ids else {}
        # Anyone can write a trailer: only the row of its attempt shows that a commit is a task's landing.
        return (
            {one.candidate_sha: tasks[one.task_id] for one in tx.find(Attempt, task_id=list(tasks))}
            if tasks
            else {}
        )

    known = await world.store.read(landings)
    lines = ["Landed since the attempt began:"]
    for one in landed:
        task = known.get(one.step.sha)
        whose = f"task {task.key} ({task.title})" if task else "a commit that is not of this plan"
        lines.append(f"- {whose}, commit {one.step.sha[:12]}: {_named(one.paths)}")
    return keep_start("\n".join(lines), _NAMES)


async def _own(repository: Repository, base: str, mine: str) -> str:
    changed = await repository.difference(base, mine, limit=_OWN)
    whole = f"`git diff {base} {mine}` shows all of it"
    return f"What the attempt itself changed ({whole}; it is kept, but not in your tree):\n{changed}"


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _FILES} more" if len(paths) > _FILES else ""
    return ", ".join(paths[:_FILES]) + more


def _clean(world: World, plan: Plan, attempt: Attempt, parts: Sequence[str]) -> str:
    """Join the parts without secrets: a diff may contain what an agent wrote into a file."""
    return without_secrets(world, plan, attempt, "\n\n".join(part.rstrip() for part in parts))


_FINISHED = (ReviewState.CLEAR, ReviewState.BLOCKING, ReviewState.UNCLEAR)


async def build(landing: Landing, tip: str) -> "Built | Objection":
    """Build the commit that would land on `tip`; return an objection if that is impossible."""
    plan, attempt = landing.plan, landing.attempt
    if await landing.repository.is_pinned(taken_ref(plan.id, need(attempt.base_sha, "a base"))):
        # A merge would bring these commits back as if this attempt had made them.
        return base_taken_back()
    run, receipt = await landing.world.store.read(
        lambda tx: (author_of(tx, attempt), landing_trailer(tx, plan, landing.task, attempt))
    )
    try:
        candidate = await landing.repository.candidate(
            tip=tip,
            attempt_sha=need(attempt.tip_sha, "a snapshot"),
            subject=commit_subject(landing.task),
            trailers=replace(trailers(attempt, run), receipt=receipt),
            at=run.ended_at or attempt.updated_at,
            leave=touched_books(landing.project, plan, attempt),
        )
    except MergeConflict as conflict:
        await landing.place.first(lands=False)
        landing.place.leave()
        seen = await told_of_conflict(landing.world, landing.repository, plan, attempt, tip, conflict)
        return conflict_at(conflict.paths, seen)
    return Built(landing=landing, tip=tip, candidate=candidate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A candidate, and the functions that collect facts about it."""

    landing: Landing
    tip: str
    """What it was built on."""
    candidate: Candidate
    top: str = ""
    """The commit that continues the branch: the candidate, or status write-back on top of it."""
    old: OldChecks | None = None
    """The candidate with its judging files restored."""

    async def objections(self) -> tuple[Objection, ...]:
        """Return the objections from before any check runs."""
        landing, candidate = self.landing, self.candidate
        sent_back = await landing.world.store.read(lambda tx: rejected(tx, landing.task, landing.attempt))
        return early_objections(
            links=await leading_out(landing.repository, landing.task, candidate),
            documents=await left_behind(
                landing.repository, landing.project, landing.plan, landing.task, candidate.sha
            ),
            rejected=await as_rejected(landing.repository, candidate, sent_back),
        )

    async def ready(self) -> "Built":
        """Add status write-back, restore judging files, and let later candidates build on this one."""
        landing, candidate = self.landing, self.candidate
        plan, task = landing.plan, landing.task
        if plan.books:
            below = await landing.repository.judged(candidate.parent)
            candidate = replace(candidate, judged_parent=below)
        top = await booked(
            landing.world, landing.repository, landing.project, plan, task, landing.attempt, candidate
        )
        landing.place.build(top, lands=not candidate.empty)
        judges = judges_of(landing.project, plan, task)
        old = await with_old_checks(landing.repository, judges, candidate)
        return replace(self, candidate=candidate, top=top, old=old)

    def found(self, objections: tuple[Objection, ...] = ()) -> Found:
        """Return what is known before any check runs."""
        landing = self.landing
        found = Found(
            plan=landing.plan,
            task=landing.task,
            attempt=landing.attempt,
            subfolder=landing.project.subfolder,
            by_hand=landing.attempt.agent == HUMAN,
            objections=objections,
            is_empty=self.candidate.empty,
        )
        if self.old is None:
            return found
        return replace(found, files=self.old.facts, is_restored=self.old.restored is not None)

    async def decide(self, found: Found, interrupt: asyncio.Event) -> tuple[Found, Decision]:
        """Collect one fact after the other until there is a decision."""
        decision = judge_candidate(found)
        while isinstance(decision, Want):
            found = await self._find(decision, found, interrupt)
            decision = judge_candidate(found)
        return found, decision

    async def _find(self, want: Want, found: Found, interrupt: asyncio.Event) -> Found:
        landing, candidate = self.landing, self.candidate
        match want:
            case Want.VERDICT:
                record_id, verdict = await gated(landing, self._known_checks(found), interrupt)
                return replace(found, verdict=verdict, verdict_id=record_id)
            case Want.HELD_OUT:
                _, verdict = await gated(landing, self._held_out_checks(found), interrupt)
                return replace(found, held_out=verdict)
            case Want.ALONE:
                return replace(found, alone=await self._alone(found, interrupt))
            case Want.ROUNDS:
                verdict = found.held_out or need(found.verdict, "a verdict")
                rested = await settles(landing.world, landing.plan, landing.task, landing.attempt, verdict)
                return replace(found, rounds_settled=rested)
            case Want.OLD_CHECKS:
                return await self._with_old_checks(found, interrupt)
            case Want.RED_PROOF:
                ask, verdict = self._ask(found), need(found.verdict, "a verdict")
                red = await red_proof(landing, ask, candidate, verdict, found.verdict_id, interrupt)
                return replace(found, red=red)
            case Want.DECISIONS:
                patch = await landing.repository.patch(candidate.parent, candidate.sha)
                decided = await landing.world.store.read(lambda tx: decisions(tx, landing, patch))
                return replace(found, decided=decided)

    async def _alone(self, found: Found, interrupt: asyncio.Event) -> Alone:
        landing = self.landing
        await landing.place.first(lands=False)
        # Later candidates need not wait for this.
        landing.place.leave()
        verdict = found.held_out or need(found.verdict, "a verdict")
        passes, seen = await told_of_red(
            landing.world, landing.repository, self._ask(found), verdict, interrupt
        )
        return Alone(passes=passes, evidence=seen)

    async def _with_old_checks(self, found: Found, interrupt: asyncio.Event) -> Found:
        """Check the candidate with its judging files restored."""
        landing, candidate = self.landing, self.candidate
        restored = need(need(self.old, "the old checks").restored, "the restored tree")
        parent = candidate.judged_parent or candidate.parent
        if restored.tree == await landing.repository.tree_of(parent):
            return replace(found, only_judging_files=True)
        without = found.files.pinned_without
        if all(one.command in without for one in task_commands(landing.plan, landing.task)):
            # Every command needs a file that the work adds, so none proves anything without it.
            return replace(found, old_checks=Verdict(status=VerdictStatus.PASSED))
        ask = self._known_checks(found, restored, without=without, old_files=True)
        _, verdict = await gated(landing, ask, interrupt)
        return replace(found, old_checks=verdict)

    # --- the questions that a gate answers ---------------------------------------------------------------

    def _ask(self, found: Found, candidate: Candidate | None = None) -> Judging:
        landing, candidate = self.landing, candidate or self.candidate
        commands = task_commands(landing.plan, landing.task)
        return Judging(
            project=landing.project,
            plan=landing.plan,
            attempt=landing.attempt,
            role=Role.GATE,
            sha=candidate.sha,
            tree=candidate.tree,
            commands=commands,
            still_mine=landing.still_mine,
            before=candidate.judged_parent or candidate.parent,
            exempt=found.files.exempt,
            rewritten=(*found.files.exempt, *found.files.pinned),
            # A loop runs until its gates are green, so they count as its own.
            own=commands if loops(landing.plan, landing.task) else landing.task.acceptance,
        )

    def _known_checks(
        self,
        found: Found,
        candidate: Candidate | None = None,
        *,
        without: Sequence[str] = (),
        old_files: bool = False,
    ) -> Judging:
        """Return the question about every check that the author knows, or about all but some."""
        landing, files = self.landing, found.files
        ask = self._ask(found, candidate)
        changes = self.candidate.changes
        brought = tuple(inside(found.subfolder, one.path) for one in changes if one.after is not None)
        commands, own = (
            tuple(one for one in each if one.command not in without) for each in (ask.commands, ask.own)
        )
        gates = {gate.command for gate in landing.plan.gates}
        acceptance = tuple(one for one in own if one.command not in gates)
        # New test files could affect other tests, so only a command that names all of them shares a run.
        touched = () if old_files else (*files.pinned, *files.exempt)
        return replace(
            ask,
            commands=commands,
            own=own,
            brought=brought,
            may_share=tuple(one for one in acceptance if names_all(one.command, landing.plan.gates, touched)),
            may_be_empty=acceptance if old_files else (),
        )

    def _held_out_checks(self, found: Found) -> Judging:
        """Return the question about held-out checks, with the old judging files.

        The base commit has no files for them.
        """
        held, old = self.landing.task.held_out, need(self.old, "the old checks")
        return replace(
            self._ask(found, old.restored),
            commands=held_commands(held),
            own=held_commands(held),
            unseen=True,
            files=held_files(held),
            before=None,
            exempt=(),
            rewritten=(),
        )


async def gated(landing: Landing, ask: Judging, interrupt: asyncio.Event) -> tuple[str | None, Verdict]:
    """Run a gate for an attempt; return the id of its verdict, and the verdict."""
    record, verdict = await judge_until_known(landing.world, landing.repository, ask, interrupt)
    return (record.id if record else None), verdict


def decisions(tx: Tx, landing: Landing, patch: Patch) -> Decided:
    """Return what users and reviewers decided about a change, in any attempt at the task."""
    attempt = need(tx.get(Attempt, landing.attempt.id), "the attempt")
    run = author_of(tx, attempt)
    said = has_had_its_turn(attempt) and run.state is RunState.COMPLETE
    answers = tx.find(
        Question,
        task_id=landing.task.id,
        kind=KIND,
        state=QuestionState.ANSWERED,
        order_by=("-answered_at",),
    )
    reviews = tx.find(
        Review,
        task_id=landing.task.id,
        patch_sha256=patch.sha256,
        state=_FINISHED,
        order_by=("-created_at",),
    )
    return Decided(
        patch=patch,
        answers=tuple(answers),
        reviews=tuple(reviews),
        reason=run.summary if said else "",
    )


# --- work that the user rejected does not return unchanged -----------------------------------------------

_REJECTED: Final = ("task_reopened", "task_rejected")
_MOST: Final = 5
"""How many of the newest rejections count."""


def rejected(tx: Tx, task: Task, attempt: Attempt) -> list[tuple[Attempt, str]]:
    """Return the attempts at a task that the user sent back, the newest first, each with the comment."""
    # A user who submits the same work again has decided so.
    if attempt.n == 1 or attempt.agent == HUMAN:
        return []
    tried = [one for one in tx.find(Attempt, task_id=task.id, order_by=("n",)) if one.tip_sha is not None]
    found = []
    for event in reversed(tx.events(plan=task.plan_id, task=task.id, types=_REJECTED)):
        about = event.payload
        # Work that builds on rejected work is redone as well, without a comment.
        before = [one for one in tried if one.n < about["n"]] if about.get("note") else []
        if before and about["why"] == "reject":
            found.append((before[-1], str(about["note"])))
    return found[:_MOST]


async def as_rejected(
    repository: Repository, candidate: Candidate, sent_back: list[tuple[Attempt, str]]
) -> tuple[int, str] | None:
    """Return the rejected attempt with exactly this change, by its number, and the comment; None if there is none."""
    if candidate.empty or not sent_back:
        return None
    mine = (await repository.patch(candidate.parent, candidate.sha)).sha256
    for attempt, said in sent_back:
        landed = (attempt.candidate_parent, attempt.candidate_sha)
        old, new = landed if all(landed) else (attempt.base_sha, attempt.tip_sha)
        try:
            for sha in (old, new):
                await repository.tree_of(sha or "")
        except CommitGone:
            continue  # its commits were removed, so they cannot be compared
        if (await repository.patch(old or "", new or "")).sha256 == mine:
            return attempt.n, said
    return None
