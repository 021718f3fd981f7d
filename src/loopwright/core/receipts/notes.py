"""Notes of a receipt: facts that a reader should know and that change neither the outcome nor the exit code."""

from collections.abc import Iterator, Mapping

from loopwright.core.gates.gate_limits import limits_of
from loopwright.core.gates.verdicts import gate_key
from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.policy.red_first import must_show
from loopwright.core.receipts.events import checkout_notes
from loopwright.core.receipts.gaps import Note, listed
from loopwright.core.receipts.model import PlanEntry, ReceiptFacts, ReviewEntry, RunEntry, TaskFacts
from loopwright.core.receipts.verdicts import (
    found_status,
    latest_verdicts,
    pinned_commands,
    result_commands,
    speaking,
    task_commands,
)
from loopwright.core.replies.qa import TYPE
from loopwright.core.rows.model import AUTHORS
from loopwright.core.values.containment import Containment
from loopwright.core.values.findings import VerdictStatus
from loopwright.core.values.states import FinishState, ReviewState, TaskState


def notes_of(body: ReceiptFacts) -> list[Note]:
    """Return every note of a receipt, each once."""
    whole = (Note(text=text) for text in (*_about_result(body), *_about_runs(body), *_about_reviews(body)))
    tasks = (
        Note(text=text, task=task.key)
        for task in body.tasks
        if task.status is not TaskState.CANCELLED or task.manual
        for text in (*_about_task(body, task), *_about_landing(body, task))
    )
    return list(dict.fromkeys((*tasks, *whole)))


def _about_result(body: ReceiptFacts) -> Iterator[str]:
    asked = result_commands(body)
    final = latest_verdicts(body).get((body.plan.result_tree, gate_key(asked)))
    if final and final.checks.skipped and found_status(final, asked) is VerdictStatus.PASSED:
        yield f"{final.checks.skipped} checks of gate:all were skipped on the result"
    plan = body.plan
    for check, by in zip(plan.contradicted, plan.allowed_by, strict=False):
        who = f"allowed by {by}" if by else "without permission"
        yield f"the tasks together contradict the check {check} of the plan's base commit, {who}"
    landed = [task for task in body.tasks if task.landed_sha is not None]
    all_held_out = bool(landed) and all(task.held_out for task in landed)
    yield from limits_of(final.commands if final else (), held_out=all_held_out)
    said: dict[tuple[str, str], set[str]] = {}
    for verdict in speaking(body):
        said.setdefault((verdict.tree, verdict.gate_key), set()).add(verdict.status)
    if both := sum(len(statuses) > 1 for statuses in said.values()):
        yield f"{both} trees got different verdicts from the same commands: the latest counts"
    for one in body.finishes:
        done = one.state is FinishState.FINISHED
        if done and one.verdict_id is None and one.commit_sha != one.target_sha:
            yield f"nothing checked what {one.id} took over: {one.actor} accepted it"
    yield from checkout_notes(body.checkout_changes)


def _about_task(body: ReceiptFacts, task: TaskFacts) -> Iterator[str]:
    plan, name = body.plan, repr(task.key)
    if task.manual:
        if task.is_settled_by_hand:
            yield f"step {name} is for a person, and no command checked it: {task.reason or 'settled in the source'}"
        return
    yield from _about_qa(body, task)
    if not task.acceptance and not task.is_passed_by_word and plan.gates:
        yield f"task {name} has no acceptance command: only gate:all checked it"
    if outside := task.strayed:
        yield f"task {name} changed files outside of its scope: {listed(outside)}"
    if count := task.criteria:
        what = "criterion" if count == 1 else "criteria"
        yield f"task {name} has {count} {what} in words: only commands were run"


def _about_qa(body: ReceiptFacts, task: TaskFacts) -> Iterator[str]:
    """Yield what a QA review does not prove."""
    mine = [one for one in body.looks if one.task_id == task.id]
    if task.type == TYPE and task.status is TaskState.COMPLETE and mine:
        at = f"{(mine[-1].commit or '')[:10]} ({mine[-1].mode})"
        yield (f"the QA agent of {task.key!r} says that nothing is wrong at {at}: nothing checked that")


def _about_landing(body: ReceiptFacts, task: TaskFacts) -> Iterator[str]:
    """Yield what was seen when a task landed and is not open any more, or never mattered to the result."""
    if task.landed_sha is None:
        return
    plan, facts, name = body.plan, task.gate_files, repr(task.key)
    yield from _about_judges(facts, name)
    shown = facts.red_proof or facts.red_seen or _failed_before(plan, task, facts)
    if not shown and not must_show(task.origin, task.type, prove=task.prove):
        why = {
            True: "its checks pass without the work too",
            False: "nothing was seen to fail without the work",
        }[facts.red_proof is False]
        yield f"task {name} is not demonstrated: {why}"
    elif facts.red_skipped:
        yield f"task {name} need not show that its checks fail without its work: {facts.red_skipped}"
    judged = {
        (task.tree, gate_key(task_commands(plan, task))),
        (facts.pinned_tree, gate_key(pinned_commands(plan, task))),
    }
    found = [one for one in speaking(body) if (one.tree, one.gate_key) in judged]
    if count := max((sum(c.known_failures for c in one.commands) for one in found), default=0):
        tests = "1 test" if count == 1 else f"{count} tests"
        yield f"when task {name} landed, {tests} failed as before its work"
    for text in dict.fromkeys(one.unknown_before for one in found):
        if text:
            yield f"when task {name} landed, its tests were not compared with those before: {text}"
    for text in dict.fromkeys(text for one in found for text in one.notes):
        yield f"task {name}: {text}"


def _failed_before(plan: PlanEntry, task: TaskFacts, facts: GateFiles) -> bool:
    """Return whether acceptance failed on the base, or needs a test that the work added; not if a trial showed else."""
    commands = {one.command for one in task.acceptance}
    red = not commands.isdisjoint((*plan.red_on_base, *facts.pinned_without))
    return red and facts.red_proof is None


def _about_judges(facts: GateFiles, name: str) -> Iterator[str]:
    for named, words in (
        (facts.exempt, "changed judging files that `may_change` names"),
        (facts.pinned_without, "has commands that need files or tests which it added"),
        (facts.build_files, "changed build files, which may steer the gate"),
        (facts.missing, "no longer runs tests that passed before"),
        (facts.suspicious, "has places that a reviewer should read"),
    ):
        if named:
            yield f"task {name} {words}: {listed(named)}"
    for check, by in zip(facts.contradicted, facts.allowed_by, strict=False):
        does = "no longer runs" if check in facts.removed else "contradicts"
        yield f"task {name} {does} the existing check {check}, allowed by {by}"


def _about_runs(body: ReceiptFacts) -> Iterator[str]:
    spent = [run for run in body.runs if run.agent is not None and run.started_at is not None]
    for known, words in (
        ([run.cost_micros for run in spent], "cost"),
        ([run.permission_mode for run in spent], "permission mode"),
        ([run.agent_version for run in spent], "agent's version"),
    ):
        if unknown := sum(one is None for one in known):
            yield f"the {words} of {unknown} of {len(spent)} agent runs is not known"
    if estimated := sum(run.cost_estimated for run in spent):
        yield f"the cost of {estimated} of {len(spent)} agent runs is an estimate from its tokens"
    for mode in sorted({run.permission_mode for run in spent if run.permission_mode is not None}):
        count = sum(run.permission_mode == mode for run in spent)
        yield f"{count} agent runs had the permission mode {mode!r}: what else they did is not known"
    # No sandbox can contain what a person does by hand.
    begun = [
        run
        for run in body.runs
        if run.started_at is not None and (run.agent is not None or run.role not in AUTHORS)
    ]
    if open_ := sum(run.sandbox in (None, Containment.NONE.value) for run in begun):
        yield f"{open_} of {len(begun)} runs had no sandbox around them: they could act on the whole machine"
        # In the words of docs/explanation/safety.md, which says why.
        yield (
            "files that git ignores, the branches of other plans, and all outside of the repository were not watched "
            "while they ran"
        )


def _about_reviews(body: ReceiptFacts) -> Iterator[str]:
    """Yield what no independent reviewer has looked at, and what a review is not worth."""
    landed = [task for task in body.tasks if task.landed_sha is not None]
    seen = {task.id: review for task in landed if (review := body.review_of(task)) is not None}
    if not seen:
        yield "no independent reviewer looked at the work"
        return
    if unseen := [repr(task.key) for task in landed if task.id not in seen]:
        yield f"no independent reviewer looked at the work of {listed(unseen)}"
    runs = {run.id: run for run in body.runs}
    for task in landed:
        if (review := seen.get(task.id)) is not None:
            yield from _about_review(task, review, runs)
    yield "what reviewers say is their opinion: that they looked is a fact, that they are right is not"


def _about_review(
    task: TaskFacts,
    review: ReviewEntry,
    runs: Mapping[str, RunEntry],
) -> Iterator[str]:
    name = repr(task.key)
    if review.state not in (ReviewState.CLEAR, ReviewState.UNCLEAR):
        yield f"the review of task {name} came to no result: {review.problem or review.state}"
    if not review.shown_whole:
        yield f"not all of the change of task {name} was shown to its reviewer"
    by = runs.get(review.run_id)
    reviewer = (by.agent, by.model) if by else (None, None)
    authors = [run for run in runs.values() if run.task_id == task.id and run.role in AUTHORS]
    if reviewer in [(run.agent, run.model) for run in authors]:
        yield f"the reviewer of task {name} was the same agent and model as its author"
