"""Notes of a receipt: facts for the reader that change neither the outcome nor the exit code."""

from collections.abc import Iterator, Mapping

from loopwright.core.gates.gate_limits import limits_of
from loopwright.core.gates.verdicts import gate_key
from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.policy.red_first import must_show
from loopwright.core.receipts.events import checkout_notes
from loopwright.core.receipts.gaps import Note, NoteCode, listed
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

_Said = tuple[NoteCode, str]


def notes_of(body: ReceiptFacts) -> list[Note]:
    """Return every note of a receipt, each once."""
    whole = (
        Note(code=code, text=text)
        for code, text in (*_about_result(body), *_about_runs(body), *_about_reviews(body))
    )
    tasks = (
        Note(code=code, text=text, task=task.key)
        for task in body.tasks
        if task.status is not TaskState.CANCELLED or task.manual
        for code, text in (*_about_task(body, task), *_about_landing(body, task))
    )
    return list(dict.fromkeys((*tasks, *whole)))


def _about_result(body: ReceiptFacts) -> Iterator[_Said]:
    asked = result_commands(body)
    final = latest_verdicts(body).get((body.plan.result_tree, gate_key(asked)))
    if final and final.checks.skipped and found_status(final, asked) is VerdictStatus.PASSED:
        yield NoteCode.CHECKS_SKIPPED, f"{final.checks.skipped} checks of gate:all were skipped on the result"
    plan = body.plan
    for check, by in zip(plan.contradicted, plan.allowed_by, strict=False):
        who = f"allowed by {by}" if by else "without permission"
        yield (
            NoteCode.PLAN_CONTRADICTS_CHECK,
            f"the tasks together contradict the check {check} of the plan's base commit, {who}",
        )
    landed = [task for task in body.tasks if task.landed_sha is not None]
    all_held_out = bool(landed) and all(task.held_out for task in landed)
    for name, text in limits_of(final.commands if final else (), held_out=all_held_out):
        yield NoteCode(f"limit_{name}"), text
    said: dict[tuple[str, str], set[str]] = {}
    for verdict in speaking(body):
        said.setdefault((verdict.tree, verdict.gate_key), set()).add(verdict.status)
    if both := sum(len(statuses) > 1 for statuses in said.values()):
        yield (
            NoteCode.VERDICTS_DIFFER,
            f"the same commands gave different verdicts on {both} trees: the latest counts",
        )
    for one in body.finishes:
        done = one.state is FinishState.FINISHED
        if done and one.verdict_id is None and one.commit_sha != one.target_sha:
            yield (
                NoteCode.FINISH_NOT_CHECKED,
                f"nothing checked what {one.id} delivered: {one.actor} accepted it",
            )
    for text in checkout_notes(body.checkout_changes):
        yield NoteCode.CHECKOUT_CHANGED, text


def _about_task(body: ReceiptFacts, task: TaskFacts) -> Iterator[_Said]:
    plan, name = body.plan, repr(task.key)
    if task.manual:
        if task.is_settled_by_hand:
            yield (
                NoteCode.SETTLED_BY_HAND,
                f"step {name} is manual, and no command checked it: {task.reason or 'settled in the source'}",
            )
        return
    yield from _about_qa(body, task)
    if not task.acceptance and not task.is_passed_by_word and plan.gates:
        yield NoteCode.NO_ACCEPTANCE, f"task {name} has no acceptance command: only gate:all checked it"
    if outside := task.strayed:
        yield NoteCode.OUTSIDE_SCOPE, f"task {name} changed files outside its scope: {listed(outside)}"
    if count := task.criteria:
        what = "criterion" if count == 1 else "criteria"
        yield NoteCode.CRITERIA_IN_WORDS, f"task {name} has {count} {what} in words: only commands were run"


def _about_qa(body: ReceiptFacts, task: TaskFacts) -> Iterator[_Said]:
    """Yield what a QA review does not prove."""
    mine = [one for one in body.looks if one.task_id == task.id]
    if task.type == TYPE and task.status is TaskState.COMPLETE and mine:
        at = f"{(mine[-1].commit or '')[:10]} ({mine[-1].mode})"
        yield (
            NoteCode.QA_NOT_CHECKED,
            f"the QA agent of {task.key!r} found nothing wrong at {at}: nothing checked this claim",
        )


def _about_landing(body: ReceiptFacts, task: TaskFacts) -> Iterator[_Said]:
    """Yield facts about a landing that do not affect the result."""
    if task.landed_sha is None:
        return
    plan, facts, name = body.plan, task.gate_files, repr(task.key)
    yield from _about_judges(facts, name)
    shown = facts.red_proof or facts.red_seen or _failed_before(plan, task, facts)
    if not shown and not must_show(task.origin, task.type, prove=task.prove):
        why = {
            True: "its checks also pass without the work",
            False: "no check failed without the work",
        }[facts.red_proof is False]
        yield NoteCode.NOT_DEMONSTRATED, f"task {name} is not demonstrated: {why}"
    elif facts.red_skipped:
        yield (
            NoteCode.NEED_NOT_SHOW,
            f"task {name} does not have to show a check that fails without its work: {facts.red_skipped}",
        )
    judged = {
        (task.tree, gate_key(task_commands(plan, task))),
        (facts.pinned_tree, gate_key(pinned_commands(plan, task))),
    }
    found = [one for one in speaking(body) if (one.tree, one.gate_key) in judged]
    if count := max((sum(c.known_failures for c in one.commands) for one in found), default=0):
        tests = "1 test" if count == 1 else f"{count} tests"
        yield (
            NoteCode.FAILED_AS_BEFORE,
            f"when task {name} landed, {tests} failed that also failed before its work",
        )
    for text in dict.fromkeys(one.unknown_before for one in found):
        if text:
            yield (
                NoteCode.TASK_NOT_COMPARED,
                f"when task {name} landed, its tests were not compared with the tests before it: {text}",
            )
    for text in dict.fromkeys(text for one in found for text in one.notes):
        yield NoteCode.GATE_NOTE, f"task {name}: {text}"


def _failed_before(plan: PlanEntry, task: TaskFacts, facts: GateFiles) -> bool:
    """Return whether acceptance failed on the base commit, or needs a test that the work added.

    A trial that shows otherwise wins.
    """
    commands = {one.command for one in task.acceptance}
    red = not commands.isdisjoint((*plan.red_on_base, *facts.pinned_without))
    return red and facts.red_proof is None


def _about_judges(facts: GateFiles, name: str) -> Iterator[_Said]:
    for named, code, words in (
        (facts.exempt, NoteCode.JUDGES_CHANGED, "changed judging files that `may_change` names"),
        (
            facts.pinned_without,
            NoteCode.NEEDS_ADDED_FILES,
            "has commands that need files or tests that it added",
        ),
        (facts.build_files, NoteCode.BUILD_FILES_CHANGED, "changed build files, which may steer the gate"),
        (facts.missing, NoteCode.TESTS_MISSING, "no longer runs tests that passed before"),
        (facts.suspicious, NoteCode.SUSPICIOUS, "has places that a reviewer should read"),
    ):
        if named:
            yield code, f"task {name} {words}: {listed(named)}"
    for check, by in zip(facts.contradicted, facts.allowed_by, strict=False):
        removed = check in facts.removed
        code = NoteCode.REMOVES_CHECK if removed else NoteCode.CONTRADICTS_CHECK
        does = "no longer runs" if removed else "contradicts"
        yield code, f"task {name} {does} the existing check {check}, allowed by {by}"


def _about_runs(body: ReceiptFacts) -> Iterator[_Said]:
    spent = [run for run in body.runs if run.agent is not None and run.started_at is not None]
    for known, code, words in (
        ([run.cost_micros for run in spent], NoteCode.COST_UNKNOWN, "cost"),
        ([run.permission_mode for run in spent], NoteCode.PERMISSION_MODE_UNKNOWN, "permission mode"),
        ([run.agent_version for run in spent], NoteCode.AGENT_VERSION_UNKNOWN, "agent's version"),
    ):
        if unknown := sum(one is None for one in known):
            yield code, f"the {words} of {unknown} of {len(spent)} agent runs is unknown"
    if estimated := sum(run.cost_estimated for run in spent):
        yield (
            NoteCode.COST_ESTIMATED,
            f"the cost of {estimated} of {len(spent)} agent runs is an estimate from its tokens",
        )
    for mode in sorted({run.permission_mode for run in spent if run.permission_mode is not None}):
        count = sum(run.permission_mode == mode for run in spent)
        yield (
            NoteCode.PERMISSION_MODE,
            f"{count} agent runs had the permission mode {mode!r}, so what else they did is unknown",
        )
    # A sandbox cannot contain what the user does by hand.
    begun = [
        run
        for run in body.runs
        if run.started_at is not None and (run.agent is not None or run.role not in AUTHORS)
    ]
    if open_ := sum(run.sandbox in (None, Containment.NONE.value) for run in begun):
        yield (
            NoteCode.NO_SANDBOX,
            f"{open_} of {len(begun)} runs had no sandbox: they could change anything on the machine",
        )
        # In the words of docs/explanation/safety.md, which gives the reasons.
        yield (
            NoteCode.NOT_WATCHED,
            (
                "files that git ignores, the branches of other plans, and everything outside the repository were not "
                "watched during these runs"
            ),
        )


def _about_reviews(body: ReceiptFacts) -> Iterator[_Said]:
    """Yield the work that no independent reviewer read, and what a review does not prove."""
    landed = [task for task in body.tasks if task.landed_sha is not None]
    seen = {task.id: review for task in landed if (review := body.review_of(task)) is not None}
    if not seen:
        yield NoteCode.NO_REVIEWER, "no independent reviewer read the work"
        return
    if unseen := [repr(task.key) for task in landed if task.id not in seen]:
        yield NoteCode.NO_REVIEWER, f"no independent reviewer read the work of {listed(unseen)}"
    runs = {run.id: run for run in body.runs}
    for task in landed:
        if (review := seen.get(task.id)) is not None:
            yield from _about_review(task, review, runs)
    yield (
        NoteCode.REVIEW_IS_OPINION,
        "a review is an opinion: it shows that a reviewer read the work, not that the work is right",
    )


def _about_review(
    task: TaskFacts,
    review: ReviewEntry,
    runs: Mapping[str, RunEntry],
) -> Iterator[_Said]:
    name = repr(task.key)
    if review.state not in (ReviewState.CLEAR, ReviewState.UNCLEAR):
        yield (
            NoteCode.REVIEW_WITHOUT_RESULT,
            f"the review of task {name} had no result: {review.problem or review.state}",
        )
    if not review.shown_whole:
        yield (
            NoteCode.CHANGE_NOT_SHOWN_WHOLE,
            f"the reviewer of task {name} did not see the whole change",
        )
    by = runs.get(review.run_id)
    reviewer = (by.agent, by.model) if by else (None, None)
    authors = [run for run in runs.values() if run.task_id == task.id and run.role in AUTHORS]
    if reviewer in [(run.agent, run.model) for run in authors]:
        yield (
            NoteCode.REVIEWER_IS_AUTHOR,
            f"the reviewer of task {name} was the same agent and model as its author",
        )
