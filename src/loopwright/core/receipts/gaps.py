"""Decide what is a gap: something a careful maintainer wants to know before merging.

A gap lowers `verified` to `verified with gaps` and has a cause and a remedy. Other facts are notes in the
receipt and change neither outcome nor exit code. The engine and the receipt both use these functions, so the
outcome in the database and the outcome that follows from the receipt agree.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.values.findings import Verdict
from loopwright.core.values.states import ReviewState

_SHOWN = 10


class GapCode(StrEnum):
    """The cause of a gap. A code never changes; the sentence may."""

    NOT_SHOWN = "not_shown"
    """A task must show that its checks fail without its work, and does not."""
    REVIEW_UNCLEAR = "review_unclear"
    ONLY_VISIBLE_CHECKS = "only_visible_checks"
    """`unseen_proof` is on, and the author could see every check."""
    FLAKY = "flaky"
    KNOWN_FAILURES = "known_failures"
    """Tests fail as they did before the plan."""
    NOT_COMPARED = "not_compared"
    """The tests of the result were not compared with those before the plan."""
    LEFT_OPEN = "left_open"
    """A gate run left something open."""
    FOREIGN_COMMITS = "foreign_commits"
    INSTALLED_BUILD = "installed_build"
    """A gate tests an installed build, by the setting `installed_gates`."""
    TASK_CANCELLED = "task_cancelled"
    PASSED_BY_PERSON = "passed_by_person"
    NOT_CHECKED = "not_checked"
    """A task has no acceptance, and the plan no gates."""
    HELD_OUT_NOT_RUN = "held_out_not_run"
    """Held-out checks ran when the task landed, but not on the result."""
    HELD_OUT_FAILED = "held_out_failed"
    NO_GATE = "no_gate"
    RESULT_NOT_PASSED = "result_not_passed"


class NoteCode(StrEnum):
    """What a note is about. A code never changes; the sentence may."""

    CHECKS_SKIPPED = "checks_skipped"
    PLAN_CONTRADICTS_CHECK = "plan_contradicts_check"
    LIMIT_UNSEEN = "limit_unseen"
    """No tests were seen inside a gate command."""
    LIMIT_DECEIVED = "limit_deceived"
    LIMIT_REPORTED = "limit_reported"
    LIMIT_INSIDE = "limit_inside"
    LIMIT_SEEN_BY_AUTHOR = "limit_seen_by_author"
    LIMIT_ONE_MACHINE = "limit_one_machine"
    VERDICTS_DIFFER = "verdicts_differ"
    FINISH_NOT_CHECKED = "finish_not_checked"
    CHECKOUT_CHANGED = "checkout_changed"
    SETTLED_BY_HAND = "settled_by_hand"
    QA_NOT_CHECKED = "qa_not_checked"
    NO_ACCEPTANCE = "no_acceptance"
    OUTSIDE_SCOPE = "outside_scope"
    CRITERIA_IN_WORDS = "criteria_in_words"
    NOT_DEMONSTRATED = "not_demonstrated"
    NEED_NOT_SHOW = "need_not_show"
    FAILED_AS_BEFORE = "failed_as_before"
    TASK_NOT_COMPARED = "task_not_compared"
    GATE_NOTE = "gate_note"
    """An observation of a gate run for a landed task."""
    JUDGES_CHANGED = "judges_changed"
    NEEDS_ADDED_FILES = "needs_added_files"
    BUILD_FILES_CHANGED = "build_files_changed"
    TESTS_MISSING = "tests_missing"
    SUSPICIOUS = "suspicious"
    CONTRADICTS_CHECK = "contradicts_check"
    REMOVES_CHECK = "removes_check"
    COST_UNKNOWN = "cost_unknown"
    PERMISSION_MODE_UNKNOWN = "permission_mode_unknown"
    AGENT_VERSION_UNKNOWN = "agent_version_unknown"
    COST_ESTIMATED = "cost_estimated"
    PERMISSION_MODE = "permission_mode"
    NO_SANDBOX = "no_sandbox"
    NOT_WATCHED = "not_watched"
    NO_REVIEWER = "no_reviewer"
    """No independent reviewer read the work, or a part of it."""
    REVIEW_IS_OPINION = "review_is_opinion"
    REVIEW_WITHOUT_RESULT = "review_without_result"
    CHANGE_NOT_SHOWN_WHOLE = "change_not_shown_whole"
    REVIEWER_IS_AUTHOR = "reviewer_is_author"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """One reason why a result is only verified with gaps."""

    code: GapCode
    cause: str
    """What happened, with the names of what it concerns."""
    remedy: str
    """What the user can do about it."""
    task: str | None = None
    """The key of the task that it belongs to; None for the result as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A fact that changes nothing."""

    code: NoteCode
    text: str
    task: str | None = None
    """The key of the task that it belongs to; None for the result as a whole."""


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def landing_gaps(
    key: str,
    facts: GateFiles | None,
    *,
    must_show: bool,
    review: str | None = None,
    problem: str = "",
    shown_whole: bool = False,
    held_out: bool = False,
    unseen_proof: bool = False,
    has_acceptance: bool = True,
) -> list[Gap]:
    """Return the gaps of one landed task.

    `must_show` is whether the task has to show that its checks fail without its work. `review` is the state
    of the review of exactly this change, and `problem` why it had no result.
    """
    found: list[Gap] = []
    if must_show and facts is not None and facts.red_proof is False:
        what = "its acceptance passes" if has_acceptance else "the gates, with its new tests, pass"
        found.append(
            Gap(
                code=GapCode.NOT_SHOWN,
                task=key,
                cause=f"task {key!r} does not show its work: {what} also without the work",
                remedy="Give the task a check that fails without the work.",
            )
        )
    elif must_show and facts is not None and facts.red_missing:
        found.append(
            Gap(
                code=GapCode.NOT_SHOWN,
                task=key,
                cause=f"task {key!r} does not show its work: {facts.red_missing}",
                remedy="Give the task a check that fails without the work, in acceptance or as a new test.",
            )
        )
    if review == ReviewState.UNCLEAR:
        found.append(
            Gap(
                code=GapCode.REVIEW_UNCLEAR,
                task=key,
                cause=f"the review of task {key!r} had no result: {problem or 'no answer could be read'}",
                remedy="Read the change yourself.",
            )
        )
    reviewed = review == ReviewState.CLEAR and shown_whole
    if unseen_proof and not reviewed and not held_out:
        found.append(
            Gap(
                code=GapCode.ONLY_VISIBLE_CHECKS,
                task=key,
                cause=f"task {key!r} was judged only by checks that its author could see, and `unseen_proof` is on",
                remedy="Give the task held-out checks, or have its change reviewed.",
            )
        )
    return found


def flaky_gap(names: Sequence[str], task: str | None = None) -> Gap:
    """Return the gap for checks that both failed and passed on the same tree."""
    which = (
        "these failed on the result"
        if task is None
        else f"task {task!r} landed with flaky checks, which failed"
    )
    return Gap(
        code=GapCode.FLAKY,
        task=task,
        cause=f"{which} and passed when they were run again: {listed(names)}",
        remedy="Run them several times before you merge, and fix what makes them unstable.",
    )


def known_failures_gap(count: int, names: Sequence[str]) -> Gap:
    """Return the gap for tests that were red before the plan and still are."""
    more = f": {listed(names)}" + (f" and {count - len(names)} more" * (count > len(names))) if names else ""
    return Gap(
        code=GapCode.KNOWN_FAILURES,
        cause=f"{count} test{'s fail' if count != 1 else ' fails'} on the result, as before the plan{more}",
        remedy="Fix them or remove them from the gate: a test that always fails checks nothing.",
    )


def uncompared_gap(why: str) -> Gap:
    """Return the gap for a result that could not be compared with the tests before the plan."""
    return Gap(
        code=GapCode.NOT_COMPARED,
        cause=f"the result was not compared with the tests before the plan: {why}",
        remedy="Make the gate run on the base commit, then run `loopwright reverify`.",
    )


def left_open_gap(what: str, task: str | None = None) -> Gap:
    """Return the gap for something that a gate run left open."""
    where = "the final gate run" if task is None else f"task {task!r}"
    return Gap(
        code=GapCode.LEFT_OPEN,
        task=task,
        cause=f"{where} left something open: {what}",
        remedy="Correct the gate command, then run `loopwright reverify`.",
    )


def foreign_gap(commits: Sequence[str], steering: Sequence[str]) -> Gap:
    """Return the gap for commits on the plan branch that no task made."""
    judging = f"; they changed files that judge: {listed(steering)}" if steering else ""
    return Gap(
        code=GapCode.FOREIGN_COMMITS,
        cause=f"commits on the branch that no task made, judged by the final gate alone: {listed(commits)}{judging}",
        remedy="Read these commits before you merge.",
    )


def installed_gap(gates: Sequence[str]) -> Gap:
    """Return the gap for gates that test an installed build, which the user accepted in the settings."""
    return Gap(
        code=GapCode.INSTALLED_BUILD,
        cause=f"a broken tree would pass {listed(gates)}: by the setting installed_gates it tests an installed build",
        remedy="Run these tests on the tree itself.",
    )


def is_open(verdicts: Sequence[Verdict]) -> bool:
    """Return whether these verdicts on a task's trees leave a gap, whatever the final tree shows.

    Earlier failures do not: the final tree decides about them.
    """
    return any(one.left_open or any(command.flaky for command in one.commands) for one in verdicts)
