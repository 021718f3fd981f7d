"""Which tasks have to show that their checks fail without their work."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from loopwright.core.gates.gates import Commands
from loopwright.core.integrity.gate_files import GateFiles, Kind, Rules, kind_of
from loopwright.core.rows.model import Plan, Task
from loopwright.core.values.findings import VerdictStatus


class RedProof(StrEnum):
    """Which tasks have to show it."""

    FIXES = "fixes"
    """Tasks declared as a fix, and tasks with `prove: true`."""
    OFF = "off"


FIX_ORIGIN: Final = "fix"
"""The origin of a task that Loopwright added to fix a failure of the complete gate."""
FIX_TYPES: Final = frozenset({"fix", "bug", "bugfix", "regression"})
"""The types that declare a task as a fix."""
NOTHING_SHOWS: Final = "it has no acceptance and brought no tests"
FOUND_UNSEEN: Final = "held-out checks found what it fixes, and they failed without it"
RED_ON_BASE: Final = "red_on_base"
"""The key under which a plan's evaluation stores acceptance commands that failed on its base commit."""
_CANNOT_RUN: Final = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class RedFound:
    """What shows that a task's checks fail without its work."""

    seen: tuple[str, ...] = ()
    """Tests that the gates saw fail on the base commit, and that pass with the work."""
    proof: bool | None = None
    """Whether the checks failed without the work; None if they did not run there."""
    tree: str | None = None
    """The tree without the work, on which the checks ran."""
    tests: tuple[str, ...] = ()
    """The work's tests in that tree."""
    skipped: str = ""
    """Why the task need not show it."""
    missing: str = ""
    """Why the required proof is missing."""
    not_run: tuple[str, ...] = ()
    """Tests that ran without the work and did not run with it, by command."""

    def noted_in(self, files: GateFiles) -> GateFiles:
        """Return the facts about judging files with this added."""
        return replace(
            files,
            red_seen=self.seen,
            red_proof=self.proof,
            red_tree=self.tree,
            red_tests=self.tests,
            red_skipped=self.skipped,
            red_missing=self.missing,
        )


def must_show(origin: str, type: str, *, prove: bool) -> bool:
    """Return whether a task is declared as a fix, or its author requires the proof."""
    return prove or origin == FIX_ORIGIN or type.lower() in FIX_TYPES


def is_asked(plan: Plan, task: Task) -> bool:
    """Return whether a task has to show that its checks fail without its work."""
    fixes = plan.policy.red_proof != RedProof.OFF
    return task.prove or (fixes and must_show(task.origin, task.type, prove=False))


def why_skipped(task: Task) -> str:
    """Return why a task need not show it; empty if it has to."""
    return FOUND_UNSEEN if task.origin == FIX_ORIGIN and task.held_out else ""


def is_check_file(path: str) -> bool:
    """Return whether a changed file is put into the tree without the work: a test, a conftest, or a CI script.

    Only the path decides. Product source that a test runner also reads is the work itself.
    """
    by_folder = path.startswith(("ci/", ".ci/")) or path.rpartition("/")[2] == "conftest.py"
    return by_folder or kind_of(path, Rules(), existed=True) is Kind.TEST


def red_commands(plan: Plan, task: Task, *, with_gates: bool) -> Commands:
    """Return what has to fail without a task: its acceptance, or the gates if they can show it."""
    return task.acceptance or (plan.gates if with_gates else ())


def is_red(status: str, exit_codes: Iterable[int | None]) -> bool | None:
    """Return whether checks that pass with the work failed without it; None if unknown.

    Elsewhere a missing program says nothing about a tree. Here it is, because the program exists with the work.
    """
    if status == VerdictStatus.INCONCLUSIVE:
        return True if _CANNOT_RUN in exit_codes else None
    return {VerdictStatus.FAILED.value: True, VerdictStatus.PASSED.value: False}.get(status)
