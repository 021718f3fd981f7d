"""The steps of a track after its execution: the evaluation of the whole, fixes, and the current step.

EXECUTE is followed by EVALUATE_EXECUTION. What that refuses is fixed in FIX, and evaluated again; what passes is
complete.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from loopwright.adapters.sources.plan_md.plan_md_outline import Item
from loopwright.adapters.sources.plan_md.plan_md_write import is_met
from loopwright.adapters.sources.text.titles import SHA_LENGTH, one_line
from loopwright.ports import FixTask, Judged, Mark, Progress

AGENT: Final = "loopwright"
PLANNED: Final = "EVALUATE_PLAN"
EVALUATE: Final = "EVALUATE_EXECUTION"
FIX: Final = "FIX"
GATE: Final = "gate:all"
LIMIT: Final = "loopwright-fix-cycles"
"""Id of the blocker that says that no more fixes are tried."""
VERDICT: Final = ("agent", "completed_at", "evaluators_run", "failure_items", "verdict")
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


def is_given_up(progress: Progress) -> bool:
    """Return whether the gate still fails after as many fixes as are allowed."""
    refused = progress.judged is not None and not progress.judged.passed
    return refused and 0 < progress.max_fix_cycles <= progress.fix_cycles


def planned_step(verdict: str, progress: Progress) -> dict[str, Any]:
    """Return the checkpoint of the plan's own evaluation: what a report in it says, else what ours came to.

    If no agent evaluated the plan, only the checks of programs have a result; the rest is "not evaluated".
    """
    said = progress.evaluated
    if verdict:
        return {PLANNED: {"status": verdict.upper(), "verdict": verdict.upper()[:4]}}
    if said is None:
        return {}
    checks: dict[str, Any] = {name: not ours & said.found for name, ours in _CHECKS.items()}
    if not said.by:
        unseen = (name for name, right in checks.items() if right and name not in _BY_PROGRAM)
        checks |= dict.fromkeys(("scope_alignment", *unseen, "board_review"), _NOT_EVALUATED)
    if said.passed and not said.by:
        return {PLANNED: {"status": "NOT_STARTED", "agent": AGENT, "checks": checks}}
    reasons = [one_line(one) for one in said.against]
    return {
        PLANNED: {
            "status": "PASSED" if said.passed else "FAILED",
            "verdict": "PASS" if said.passed else "FAIL",
            "agent": AGENT,
            **({"evaluator": one_line(said.by)} if said.by else {}),
            "completed_at": time_text(said.at),
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
        "agent": progress.agent or AGENT,
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
    """Return the checkpoint of the evaluation of the whole: what the complete gate said last; None if nothing."""
    judged = progress.judged
    if judged is not None:
        return _final_verdict(judged)
    if fixes.open:
        added = [one for item in fixes.open if (one := fixes.told[item.key].added_at) is not None]
        found = [fixes.issue(item) for item in fixes.open]
        return _verdict(max(added, default=progress.at), found, passed=False)
    return {"status": "NOT_STARTED"} if fixes.items and fixes.is_worked_off else None


def _final_verdict(judged: Judged) -> dict[str, Any]:
    return _verdict(judged.at, [one_line(one) for one in judged.failed], passed=judged.passed)


def _verdict(at: datetime, issues: list[str], *, passed: bool) -> dict[str, Any]:
    verdict = "PASS" if passed else "FAIL"
    return {
        "status": "PASSED" if passed else "FAILED",
        "verdict": verdict,
        "agent": AGENT,
        "completed_at": time_text(at),
        "evaluators_run": [{"evaluator": GATE, "verdict": verdict, "issues": issues}],
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
    judged = progress.judged
    mended = bool(fixes.items) and fixes.is_worked_off
    if progress.completed_at is None and not progress.rests:
        if mended:
            started = fix_step(fixes, progress)["started_at"]
            going = {"current_step": FIX, "step_status": "IN_PROGRESS", "step_started_at": started}
            return going if fixes.open else {"current_step": EVALUATE, "step_status": "NOT_STARTED"}
        return {
            "current_step": step,
            "step_status": "IN_PROGRESS",
            "step_started_at": execute["started_at"],
        }
    if judged is not None:
        # The time alone does not tell two verdicts apart: it has whole seconds, and a fix may take less than one.
        told, verdict = _at(before, EVALUATE), _final_verdict(judged)
        moved = any(told.get(key) != verdict[key] for key in ("completed_at", "verdict", "failure_items"))
        refused = (FIX, "BLOCKED") if is_given_up(progress) else (EVALUATE, "FAILED")
        name, status = ("COMPLETE", "PASSED") if judged.passed else refused
        return {"current_step": name, "step_status": status} if moved or not is_placed else {}
    if mended and fixes.open:
        return {"current_step": FIX, "step_status": "BLOCKED"}
    if not is_met((*fixes.own, *fixes.items), progress):
        return {"current_step": step, "step_status": execute["status"]}
    ended = execute.get("completed_at")
    if not is_placed or (ended is not None and _at(before, step).get("completed_at") != ended):
        return {"current_step": EVALUATE, "step_status": "NOT_STARTED"}
    return {}


def time_text(at: datetime) -> str:
    """Return a time as these files have it."""
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def _at(checkpoints: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = checkpoints.get(name)
    return found if isinstance(found, dict) else {}
