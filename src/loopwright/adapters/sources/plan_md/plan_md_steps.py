"""The steps of a track around its execution: the evaluations, fixes, and the current step.

`core.plans.tracks` has the table of steps. What EVALUATE_EXECUTION refuses is fixed in FIX, and evaluated again; what
passes is complete once its business documents are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from loopwright.adapters.sources.plan_md.plan_md_outline import Item
from loopwright.adapters.sources.plan_md.plan_md_write import is_met
from loopwright.adapters.sources.text.titles import SHA_LENGTH, one_line
from loopwright.core.plans.tracks import ROLES, TrackStep, enter
from loopwright.ports import (
    EvaluatedPlan,
    EvaluatorResult,
    ExecutionProgress,
    FixTask,
    Judged,
    Mark,
    Progress,
)

AGENT: Final = "loopwright"
"""Who ran a step that no agent ran."""
PLANNED: Final = TrackStep.EVALUATE_PLAN.value
EVALUATE: Final = TrackStep.EVALUATE_EXECUTION.value
FIX: Final = TrackStep.FIX.value
SYNC: Final = TrackStep.BUSINESS_SYNC.value
GATE: Final = "gate:all"
LIMIT: Final = "loopwright-fix-cycles"
"""Id of the blocker that says that no more fixes are tried."""
PLANNED_VERDICT: Final = ("verdict", "completed_at", "plan_sha256", "failure_reasons", "overridden_because")
VERDICT: Final = ("agent", "run_by", "completed_at", "evaluators_run", "failure_items", "verdict")
"""What an evaluation that has not begun does not say."""
_CHECKS: Final = {
    "overlap_detection": {"done", "exists", "scopes", "twins"},
    "dependencies": {"dependencies", "ids"},
    "task_quality": {"base", "can_fail", "gates", "size"},
    "dag_validation": {"cycles"},
}
"""What these files call a check, and ours that belong to it."""
_BY_PROGRAM: Final = ("dependencies", "dag_validation")
"""What a program alone can find to be right; of the others it only sees what is wrong."""
_NOT_EVALUATED: Final = "not evaluated"
_SETTLED: Final = (Mark.DONE, Mark.SKIPPED)


@dataclass(frozen=True, slots=True)
class Fixes:
    """Tasks that fix what the complete gate found, apart from the work itself."""

    own: tuple[Item, ...]
    """The tasks of the plan."""
    items: tuple[Item, ...]
    told: Mapping[str, FixTask]

    @property
    def open(self) -> tuple[Item, ...]:
        """Those that are still to be done."""
        return tuple(item for item in self.items if item.mark not in _SETTLED)

    @property
    def is_worked_off(self) -> bool:
        """Whether nothing but fixes is left to do."""
        return all(item.mark in _SETTLED for item in self.own)

    def issue(self, item: Item) -> str:
        """Return what a fix is about."""
        told = self.told[item.key]
        return one_line(told.issue) or one_line(told.title)


def apart(tasks: Iterable[Item], progress: Progress) -> Fixes:
    """Separate fixes from the work; fixes of an earlier plan are not work of this one either."""
    told = {fix.key: fix for fix in progress.fixes if not fix.found_by}
    looked = {fix.key for fix in progress.fixes if fix.found_by}
    tasks = tuple(tasks)
    items = tuple(item for item in tasks if item.key in told)
    own = tuple(item for item in tasks if item.key not in told and (not item.ours or item.key in looked))
    return Fixes(own, items, told)


def by_role(step: str, run_by: str = "") -> dict[str, str]:
    """Return what a checkpoint says of who is at work: the role, and the agent that has it."""
    return {"agent": ROLES[TrackStep(step)], "run_by": run_by or AGENT}


def is_ended(progress: Progress) -> bool:
    """Return whether nothing is worked on any more."""
    return progress.completed_at is not None or progress.rests


def given_up_at(progress: Progress) -> datetime | None:
    """Return when no more fixes were tried because so many are allowed; None while more may be."""
    if not 0 < progress.max_fix_cycles <= progress.fix_cycles:
        return None
    if progress.judged is not None and is_ended(progress):
        return None if progress.judged.passed else progress.judged.at
    execution = progress.execution
    stuck = execution is not None and execution.mark is Mark.BLOCKED and bool(execution.found)
    return (execution.ended_at or progress.at) if execution is not None and stuck else None


def is_given_up(progress: Progress) -> bool:
    """Return whether the evaluation still fails after as many fixes as are allowed."""
    return given_up_at(progress) is not None


def planned_step(verdict: str, said: EvaluatedPlan | None) -> dict[str, Any]:
    """Return the checkpoint of the plan's own evaluation: what a report in it says, else what ours came to.

    If no agent evaluated the plan, only the checks of programs have a result; the rest is "not evaluated".
    """
    if verdict:
        return {PLANNED: {"status": verdict.upper(), "verdict": verdict.upper()[:4]}}
    if said is None:
        return {}
    checks: dict[str, Any] = {name: not ours & said.found for name, ours in _CHECKS.items()}
    if said.by:
        # What an agent looked at is right unless it objects; no board was asked.
        checks |= {"scope_alignment": "evaluator" not in said.found, "board_review": _NOT_EVALUATED}
    else:
        unseen = (name for name, right in checks.items() if right and name not in _BY_PROGRAM)
        checks |= dict.fromkeys(("scope_alignment", *unseen, "board_review"), _NOT_EVALUATED)
    if said.passed and not said.by:
        return {PLANNED: {"status": "NOT_STARTED", **by_role(PLANNED), "checks": checks}}
    if said.despite and not said.by and said.found & {"unevaluated"} and len(said.against) == 1:
        because = {"overridden_because": one_line(said.despite)}
        return {PLANNED: {"status": "SKIPPED", **by_role(PLANNED), "checks": checks, **because}}
    reasons = [one_line(one) for one in said.against]
    return {
        PLANNED: {
            "status": "PASSED" if said.passed else "FAILED",
            "verdict": "PASS" if said.passed else "FAIL",
            **by_role(PLANNED, one_line(said.by)),
            "completed_at": time_text(said.at),
            **({"plan_sha256": said.source_sha256} if said.by and said.source_sha256 else {}),
            "checks": checks,
            **({"failure_reasons": reasons} if reasons else {}),
            **({"overridden_because": one_line(said.despite)} if said.despite else {}),
        }
    }


def overridden(verdict: str, progress: Progress) -> str:
    """Return why a person lets a plan run that an evaluation in its source refuses; nothing where none does."""
    said = progress.evaluated
    if said is None or verdict != "failed" or "evaluated" not in said.found:
        return ""
    return one_line(said.despite)


def fix_step(fixes: Fixes, progress: Progress) -> dict[str, Any]:
    """Return the checkpoint of the fixes; `cycle` is counted in one place, by the engine."""
    added = [one.added_at for item in fixes.items if (one := fixes.told[item.key]).added_at is not None]
    left = [item.name for item in fixes.open]
    stuck = is_given_up(progress) or (bool(left) and progress.rests)
    step: dict[str, Any] = {
        "status": "BLOCKED" if stuck else "IN_PROGRESS" if left else "PASSED",
        "started_at": time_text(max(added, default=progress.at)),
        **by_role(FIX, progress.agent),
        "cycle": max(progress.fix_cycles, 1),
        "fixes_applied": [_applied(fixes, item, progress) for item in fixes.items if item.mark is Mark.DONE],
        "fixes_remaining": left,
    }
    ends = [item.ended_at for one in fixes.items if (item := progress.items.get(one.key)) and item.ended_at]
    return step if left or not ends else {**step, "completed_at": time_text(max(ends))}


def _applied(fixes: Fixes, item: Item, progress: Progress) -> dict[str, Any]:
    standing = progress.items.get(item.key)
    commit = standing.commit if standing is not None else None
    return {
        "issue": fixes.issue(item),
        "fix": one_line(standing.summary if standing is not None else "") or item.title,
        **({"commit_sha": commit[:SHA_LENGTH]} if commit else {}),
    }


def evaluation_step(fixes: Fixes, progress: Progress) -> dict[str, Any] | None:
    """Return the checkpoint of the evaluation of the whole; None if nothing was said of it yet.

    The evaluators speak first, if the plan has any, and the complete gate last.
    """
    execution = progress.execution
    if progress.judged is not None and is_ended(progress):
        return _final_verdict(progress.judged, execution)
    if execution is not None:
        return _evaluated(fixes, progress, execution)
    if fixes.open:
        added = [one for item in fixes.open if (one := fixes.told[item.key].added_at) is not None]
        found = [fixes.issue(item) for item in fixes.open]
        return _verdict(max(added, default=progress.at), found, [_of_gate(found)])
    return {"status": "NOT_STARTED"} if fixes.items and fixes.is_worked_off else None


def _evaluated(fixes: Fixes, progress: Progress, execution: ExecutionProgress) -> dict[str, Any]:
    at = execution.ended_at or progress.at
    runs = [_run(one) for one in execution.results]
    if execution.mark is Mark.DONE:
        return _verdict(at, [], runs, run_by=execution.agent)
    if execution.found and (fixes.open or is_given_up(progress)):
        return _verdict(at, [one_line(one) for one in execution.found], runs, run_by=execution.agent)
    status = _EVALUATING[execution.mark]
    started = {"started_at": time_text(execution.started_at)} if execution.started_at is not None else {}
    return {"status": status, **by_role(EVALUATE, execution.agent), **started}


_EVALUATING: Final = {
    Mark.OPEN: "NOT_STARTED",
    Mark.RUNNING: "IN_PROGRESS",
    Mark.BLOCKED: "BLOCKED",
    # You cancelled it: only the complete gate evaluates.
    Mark.SKIPPED: "NOT_STARTED",
}


def _run(one: EvaluatorResult) -> dict[str, Any]:
    verdict = "PASS" if one.passed else "FAIL"
    return {"evaluator": one.evaluator, "verdict": verdict, "issues": [one_line(each) for each in one.issues]}


def _of_gate(issues: list[str]) -> dict[str, Any]:
    return {"evaluator": GATE, "verdict": "FAIL" if issues else "PASS", "issues": issues}


def _final_verdict(judged: Judged, execution: ExecutionProgress | None) -> dict[str, Any]:
    issues = [] if judged.passed else [one_line(one) for one in judged.failed] or ["the complete gate failed"]
    before = [] if execution is None or execution.mark is not Mark.DONE else execution.results
    agent = execution.agent if before and execution is not None else ""
    return _verdict(judged.at, issues, [*map(_run, before), _of_gate(issues)], run_by=agent)


def _verdict(at: datetime, issues: list[str], runs: list[dict[str, Any]], run_by: str = "") -> dict[str, Any]:
    return {
        "status": "FAILED" if issues else "PASSED",
        "verdict": "FAIL" if issues else "PASS",
        **by_role(EVALUATE, run_by),
        "completed_at": time_text(at),
        "evaluators_run": runs,
        "failure_items": issues,
    }


def position(
    step: str,
    execute: Mapping[str, Any],
    before: Mapping[str, Any],
    fixes: Fixes,
    progress: Progress,
    *,
    is_placed: bool,
) -> dict[str, Any]:
    """Return the current step and its status; nothing if another tool decides what comes next.

    `before` are the checkpoints as they were: a verdict moves the current step once, so that the next step of another
    tool stays. A track that has no current step, not `is_placed`, gets one.
    """
    judged, execution = progress.judged, progress.execution
    mended = bool(fixes.items) and fixes.is_worked_off
    if is_given_up(progress):
        refused = {"current_step": FIX, "step_status": "BLOCKED"}
        return refused if judged is None or not is_placed or _is_news(before, judged, execution) else {}
    if not is_ended(progress):
        return _going(step, execute, fixes, progress)
    if judged is not None:
        name, status = ("COMPLETE", "PASSED") if judged.passed else (EVALUATE, "FAILED")
        if judged.passed and progress.sync is not None and progress.sync.mark not in _SETTLED:
            name, status = SYNC, SYNCING[progress.sync.mark]
        is_news = _is_news(before, judged, execution)
        return {"current_step": name, "step_status": status} if is_news or not is_placed else {}
    if mended and fixes.open:
        return {"current_step": FIX, "step_status": "BLOCKED"}
    if not is_met((*fixes.own, *fixes.items), progress):
        return {"current_step": step, "step_status": execute["status"]}
    if execution is not None:
        if execution.mark is Mark.DONE and progress.final:
            # The tree that the complete gate judges has to say what is true once it passes.
            return {"current_step": "COMPLETE", "step_status": "PASSED"}
        return {"current_step": EVALUATE, "step_status": _evaluated(fixes, progress, execution)["status"]}
    ended = execute.get("completed_at")
    if not is_placed or (ended is not None and _at(before, step).get("completed_at") != ended):
        return {"current_step": EVALUATE, "step_status": "NOT_STARTED"}
    return {}


def _going(step: str, execute: Mapping[str, Any], fixes: Fixes, progress: Progress) -> dict[str, Any]:
    """Return the step that work is in."""
    execution, sync = progress.execution, progress.sync
    if fixes.items and fixes.is_worked_off and fixes.open:
        started = fix_step(fixes, progress)["started_at"]
        return {"current_step": FIX, "step_status": "IN_PROGRESS", "step_started_at": started}
    if execution is not None and fixes.is_worked_off:
        if execution.mark is Mark.DONE and sync is not None and sync.mark in (Mark.OPEN, Mark.RUNNING):
            return {"current_step": SYNC, "step_status": SYNCING[sync.mark]}
        status = _evaluated(fixes, progress, execution)["status"]
        started = {"step_started_at": time_text(execution.started_at)} if execution.started_at else {}
        return {"current_step": EVALUATE, "step_status": status, **started}
    if fixes.items and fixes.is_worked_off:
        return {"current_step": EVALUATE, "step_status": "NOT_STARTED"}
    return {"current_step": step, "step_status": "IN_PROGRESS", "step_started_at": execute["started_at"]}


SYNCING: Final = {
    Mark.OPEN: "NOT_STARTED",
    Mark.RUNNING: "IN_PROGRESS",
    Mark.DONE: "PASSED",
    Mark.BLOCKED: "FAILED",
    Mark.SKIPPED: "SKIPPED",
}
"""The status of the step that brings business documents up to date."""


def _is_news(before: Mapping[str, Any], judged: Judged, execution: ExecutionProgress | None) -> bool:
    # The time alone does not tell two verdicts apart: it has whole seconds, and a fix may take less than one.
    told, verdict = _at(before, EVALUATE), _final_verdict(judged, execution)
    return any(told.get(key) != verdict[key] for key in ("completed_at", "verdict", "failure_items"))


def entered(place: Mapping[str, Any], steps: Mapping[str, Any], track: str) -> dict[str, Any]:
    """Return a position, or raise `IllegalTransition` if the table of steps does not lead to it."""
    if not place:
        return {}
    known = {name: str(one["status"]) for name in (EVALUATE, SYNC) if (one := steps.get(name)) is not None}
    return {**place, **enter(place["current_step"], place["step_status"], known, track)}


def time_text(at: datetime) -> str:
    """Return a time as these files have it."""
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def _at(checkpoints: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = checkpoints.get(name)
    return found if isinstance(found, dict) else {}
