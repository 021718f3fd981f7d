"""What was said of a tree before: nothing is judged twice that need not be."""

from datetime import datetime
from typing import TYPE_CHECKING, Final

from loopwright.core.gates.flakes import green_commands
from loopwright.core.rows.model import Attempt, Role, Run, VerdictRecord
from loopwright.core.values.findings import VerdictStatus
from loopwright.engine.rows.moves import MACHINE
from loopwright.ports import Tx

if TYPE_CHECKING:
    from loopwright.engine.gates.judging import Judging

COMPLETE: Final = (Role.VERIFY, Role.EVALUATION)
"""The roles of gate:all: they belong to a plan, not to an attempt."""


def spoken(tx: Tx, ask: "Judging", key: str) -> VerdictRecord | None:
    """Return what was said of exactly this before; where it was asked more than once the latest, as in receipts."""
    if ask.role is Role.BASELINE:
        return None  # it is asked for when the files of those that there are were gone
    known = tx.find(VerdictRecord, plan_id=ask.plan.id, tree=ask.tree, gate_key=key)
    if ask.role in COMPLETE:
        # It asks anew, but only once: what its own run found before a crash still counts.
        known = [one for one in known if one.run_id == ask.plan.verify_run_id]
    elif known:
        # How a tree was before some work was held against nothing, so it is no word on a tree that is to be taken.
        before = _of_baselines(tx, known)
        known = [one for one in known if one.run_id not in before]
    latest = _latest(known)
    if latest is None or latest.verdict.status is not VerdictStatus.FAILED:
        return latest
    asked_at = _tried_again_at(tx, ask.attempt)
    return latest if asked_at is None or latest.created_at > asked_at else None


def found_without_work(tx: Tx, ask: "Judging", key: str) -> VerdictRecord | None:
    """Return what was found on exactly this tree where it was held against nothing and excused of nothing."""
    known = tx.find(VerdictRecord, plan_id=ask.plan.id, tree=ask.tree, gate_key=key)
    before = _of_baselines(tx, known)
    return _latest([one for one in known if one.run_id in before])


def green_here(tx: Tx, ask: "Judging", key: str) -> frozenset[str]:
    """Return the commands that passed on exactly this tree before."""
    known = tx.find(VerdictRecord, plan_id=ask.plan.id, tree=ask.tree)
    if ask.unseen:
        # The same command with other files laid over the tree is another question.
        known = [one for one in known if one.gate_key == key]
    return frozenset(command for record in known for command in green_commands(record.verdict))


def _of_baselines(tx: Tx, known: list[VerdictRecord]) -> set[str]:
    runs = tx.find(Run, id=[one.run_id for one in known], role=Role.BASELINE) if known else []
    return {run.id for run in runs}


def _latest(known: list[VerdictRecord]) -> VerdictRecord | None:
    return max(known, key=lambda one: (one.created_at, one.id), default=None)


def _tried_again_at(tx: Tx, attempt: Attempt | None) -> datetime | None:
    """Return when a person last had the task tried again: what failed before that, they want to have judged anew.

    They may have mended what was at fault, given leave to change a test, or think that it failed by chance.
    """
    if attempt is None or attempt.n == 1:
        return None
    retried = tx.events(plan=attempt.plan_id, task=attempt.task_id, types=("task_retried",))
    return max((event.at for event in retried if event.actor != MACHINE), default=None)
