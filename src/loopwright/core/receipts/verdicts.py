"""What the entries of a receipt say of its tasks: their commands, their landings and their reviews."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from loopwright.core.gates.gates import Commands, after_setup, each_once
from loopwright.core.gates.verdicts import gate_key
from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.policy.graph import strayed
from loopwright.core.receipts.latest_verdicts import latest as verdicts_of
from loopwright.core.rows.model import Usage
from loopwright.core.values.findings import VerdictStatus
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.states import TaskState

Json = dict[str, Any]

USAGE: Final = tuple(Usage.__dataclass_fields__)


def found_status(entry: Mapping[str, Any] | None, commands: Sequence[GateCommand]) -> VerdictStatus | None:
    """Return what a verdict says, provided that it ran exactly these commands and its own facts agree."""
    if not commands:
        return VerdictStatus.UNVERIFIED
    if entry is None:
        return None
    status = VerdictStatus(entry["status"])
    asked = [(c.name, c.command) for c in commands]
    ran = [(c["name"], c["command"]) for c in entry["commands"]]
    counts = entry["checks"]
    again = {c["command"] for rerun in entry["reruns"] for c in rerun["commands"]}
    clean = all(
        not c["timed_out"]
        and (
            c["exit_code"] == 0
            or c["known_failures"]
            or c["only_new_tests"]
            or (c["flaky"] and c["command"] in again)
        )
        for c in entry["commands"]
    )
    agrees = asked == ran and clean and counts["passed"] > 0 and not counts["failed"] and not counts["error"]
    return VerdictStatus.FAILED if status is VerdictStatus.PASSED and not agrees else status


def gate_outputs(verdict: Mapping[str, Any]) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Yield each command that a verdict ran, again where it did, with the directory and position of its output."""
    yield from ((verdict["run_id"], n, command) for n, command in enumerate(verdict["commands"], 1))
    for rerun in verdict["reruns"]:
        directory = f"{verdict['run_id']}/{rerun['folder']}"
        yield from ((directory, n, command) for n, command in enumerate(rerun["commands"], 1))


def gate_files(command: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield what else was written down of a command: how its key ends, what it is, and its hash."""
    name = command["name"]
    if command["kept_sha256"] not in ("", command["output_sha256"]):
        yield ".kept", f"what was kept of the output of {name!r}", command["kept_sha256"]
    if command["seen_sha256"]:
        yield ".seen", f"what was seen inside {name!r}", command["seen_sha256"]
    if command["report_sha256"]:
        yield ".xml", f"the report of {name!r}", command["report_sha256"]


def gate_files_of(task: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the attempt that landed did to the gate's files."""
    landed = [a for a in task["attempts"] if a["candidate_sha"] == task["landed_sha"] is not None]
    facts = next((a["gate_files"] for a in landed), None)
    return facts or asdict(GateFiles())


def strayed_in(task: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the attempt that landed changed outside of what the task had declared."""
    landed = [a for a in task["attempts"] if a["candidate_sha"] == task["landed_sha"] is not None]
    return strayed(landed[0]["touched"], task["scope"]) if landed else ()


def review_of(body: Mapping[str, Any], task: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the review of exactly what a task landed; None when nobody looked."""
    landed = [a for a in task["attempts"] if a["candidate_sha"] == task["landed_sha"] is not None]
    named = next((a["review_id"] for a in landed), None)
    return next((one for one in body["reviews"] if one["id"] == named), None)


def task_asked(plan: Mapping[str, Any], task: Mapping[str, Any]) -> Commands:
    """Return the commands that a receipt's task had to pass."""
    return after_setup(
        setup_of(plan), each_once(read_commands(task["acceptance"]), read_commands(plan["gates"]))
    )


def pinned_asked(plan: Mapping[str, Any], task: Mapping[str, Any]) -> Commands:
    """Return those that it had to pass with the gate's files as they were, where it changed any."""
    left_out = gate_files_of(task)["pinned_without"]
    both = each_once(read_commands(task["acceptance"]), read_commands(plan["gates"]))
    return after_setup(setup_of(plan), tuple(one for one in both if one.command not in left_out))


def acceptance_of(plan: Mapping[str, Any], task: Mapping[str, Any]) -> Commands:
    """Return the commands of a receipt's task alone."""
    return after_setup(setup_of(plan), read_commands(task["acceptance"]))


def held_asked(plan: Mapping[str, Any], task: Mapping[str, Any]) -> Commands:
    """Return the checks that a receipt's task had to pass unseen."""
    return after_setup(setup_of(plan), read_commands([one["check"] for one in task["held_out"]]))


def plan_asked(body: Mapping[str, Any]) -> Commands:
    """Return the commands that a receipt's final tree had to pass."""
    plan = body["plan"]
    wanted = [task for task in body["tasks"] if task["status"] != TaskState.CANCELLED.value]
    acceptance = [command for task in wanted for command in task["acceptance"]]
    return after_setup(setup_of(plan), each_once(read_commands(plan["gates"]), read_commands(acceptance)))


def unseen_asked(
    body: Mapping[str, Any], chosen: Sequence[str] = ()
) -> list[tuple[Mapping[str, Any], Commands]]:
    """Return the tasks from which checks were held out, with what a tree that has all of their work had to pass unseen.

    `chosen` are the ids of those whose work it has; otherwise it has that of all.
    """
    return [
        (task, held_asked(body["plan"], task))
        for task in body["tasks"]
        if task["held_out"]
        and task["status"] != TaskState.CANCELLED.value
        and (not chosen or task["id"] in chosen)
    ]


def finish_asked(body: Mapping[str, Any], finish: Mapping[str, Any]) -> Commands:
    """Return the commands that what a plan's end took over had to pass."""
    if not finish["tasks"]:
        return plan_asked(body)
    plan = body["plan"]
    acceptance = [
        command for task in body["tasks"] if task["id"] in finish["tasks"] for command in task["acceptance"]
    ]
    return after_setup(setup_of(plan), each_once(read_commands(plan["gates"]), read_commands(acceptance)))


def verdict_on(body: Mapping[str, Any], tree: str, commands: Commands) -> bool:
    """Say whether a tree has passed these commands, or there were none to pass."""
    found = found_status(verdicts_of(body).get((tree, gate_key(commands))), commands)
    return found in (VerdictStatus.PASSED, VerdictStatus.UNVERIFIED)


def gates_asked(plan: Mapping[str, Any]) -> Commands:
    """Return the commands that were run on the tree that a receipt's plan started from."""
    return after_setup(setup_of(plan), read_commands(plan["gates"]))


def setup_of(plan: Mapping[str, Any]) -> GateCommand | None:
    """Return the command that made every tree of a receipt's plan ready."""
    return GateCommand(**plan["setup"]) if plan["setup"] else None


def read_commands(commands: Sequence[Mapping[str, Any]]) -> Commands:
    """Return commands as a receipt tells them."""
    return tuple(GateCommand(**command) for command in commands)
