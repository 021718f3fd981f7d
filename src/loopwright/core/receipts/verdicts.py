"""What each tree of a plan had to pass, and which verdict of the receipt counts for it."""

from collections.abc import Iterator, Mapping, Sequence

from loopwright.core.gates.gates import Commands, after_setup, each_once
from loopwright.core.gates.verdicts import gate_key
from loopwright.core.receipts.model import FinishEntry, PlanEntry, ReceiptFacts, TaskFacts, VerdictEntry
from loopwright.core.rows.model import Role
from loopwright.core.values.findings import CommandFacts, VerdictStatus
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.states import TaskState

Verdicts = Mapping[tuple[str | None, str], VerdictEntry]
"""The verdict that counts, by tree and the key of its commands."""


def speaking(receipt: ReceiptFacts) -> Iterator[VerdictEntry]:
    """Yield the verdicts on trees that may land, the oldest first.

    A run on the tree before some work excuses nothing and is compared with nothing. So its failure says
    nothing about the work that landed that tree, and its success does not permit it to land.
    """
    before = _before(receipt)
    return (one for one in receipt.verdicts if one.run_id not in before)


def latest_verdicts(receipt: ReceiptFacts) -> Verdicts:
    """Return the verdict that counts for each tree and list of commands."""
    return {(one.tree, one.gate_key): one for one in speaking(receipt)}


def red_verdict(receipt: ReceiptFacts, tree: str, key: str) -> VerdictEntry | None:
    """Return the verdict of these commands on a tree without some work."""
    before = _before(receipt)
    found = [one for one in receipt.verdicts if (one.tree, one.gate_key) == (tree, key)]
    return next((one for one in reversed(found) if one.run_id in before), None)


def _before(receipt: ReceiptFacts) -> frozenset[str]:
    return frozenset(run.id for run in receipt.runs if run.role is Role.BASELINE)


def found_status(entry: VerdictEntry | None, commands: Sequence[GateCommand]) -> VerdictStatus | None:
    """Return the status of a verdict if it ran exactly these commands and its facts agree."""
    if not commands:
        return VerdictStatus.UNVERIFIED
    if entry is None:
        return None
    asked = [(one.name, one.command) for one in commands]
    ran = [(one.name, one.command) for one in entry.commands]
    counts = entry.checks
    again = {one.command for rerun in entry.reruns for one in rerun.commands}
    clean = all(_passed(one, again=one.command in again) for one in entry.commands)
    agrees = asked == ran and clean and counts.passed > 0 and not counts.failed and not counts.error
    return VerdictStatus.FAILED if entry.status is VerdictStatus.PASSED and not agrees else entry.status


def _passed(ran: CommandFacts, *, again: bool) -> bool:
    excused = ran.known_failures or ran.only_new_tests or (ran.flaky and again)
    return not ran.timed_out and (ran.exit_code == 0 or bool(excused))


def is_passed(receipt: ReceiptFacts, tree: str | None, commands: Commands) -> bool:
    """Return whether a tree passed these commands, or had none to pass."""
    found = found_status(latest_verdicts(receipt).get((tree, gate_key(commands))), commands)
    return found in (VerdictStatus.PASSED, VerdictStatus.UNVERIFIED)


def task_commands(plan: PlanEntry, task: TaskFacts) -> Commands:
    """Return the commands that a task had to pass."""
    return after_setup(plan.setup, each_once(task.acceptance, plan.gates))


def pinned_commands(plan: PlanEntry, task: TaskFacts) -> Commands:
    """Return the commands that it had to pass with the old judging files, if it changed any."""
    left_out = task.gate_files.pinned_without
    both = each_once(task.acceptance, plan.gates)
    return after_setup(plan.setup, tuple(one for one in both if one.command not in left_out))


def acceptance_commands(plan: PlanEntry, task: TaskFacts) -> Commands:
    """Return the commands of one task alone."""
    return after_setup(plan.setup, task.acceptance)


def held_out_commands(plan: PlanEntry, task: TaskFacts) -> Commands:
    """Return the held-out checks that a task had to pass."""
    return after_setup(plan.setup, tuple(one.check for one in task.held_out))


def gate_commands(plan: PlanEntry) -> Commands:
    """Return the commands that ran on the base tree of the plan."""
    return after_setup(plan.setup, plan.gates)


def result_commands(receipt: ReceiptFacts, chosen: Sequence[str] = ()) -> Commands:
    """Return the commands that the final tree had to pass, or a tree with the work of the chosen tasks."""
    wanted = [
        task
        for task in receipt.tasks
        if (task.id in chosen if chosen else task.status is not TaskState.CANCELLED)
    ]
    acceptance = tuple(command for task in wanted for command in task.acceptance)
    return after_setup(receipt.plan.setup, each_once(receipt.plan.gates, acceptance))


def held_out_tasks(receipt: ReceiptFacts, chosen: Sequence[str] = ()) -> list[tuple[TaskFacts, Commands]]:
    """Return the tasks with held-out checks, each with what a tree with its work had to pass.

    `chosen` are the ids of the tasks whose work the tree has; empty means all.
    """
    return [
        (task, held_out_commands(receipt.plan, task))
        for task in receipt.tasks
        if task.held_out and task.status is not TaskState.CANCELLED and (not chosen or task.id in chosen)
    ]


def finish_passed(receipt: ReceiptFacts, finish: FinishEntry) -> bool:
    """Return whether the tree of a finish passed everything that it had to pass."""
    held = [commands for _, commands in held_out_tasks(receipt, finish.tasks)]
    asked = (result_commands(receipt, finish.tasks), *held)
    return all(is_passed(receipt, finish.tree, one) for one in asked)
