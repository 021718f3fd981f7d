"""What a receipt knows of checks without the work: on a plan's base, and where a task has to show that they fail."""

from collections.abc import Mapping
from typing import Any

from loopwright.core.gates.verdicts import gate_key
from loopwright.core.policy.red_first import RED_ON_BASE, is_red
from loopwright.core.receipts.verdicts import acceptance_of, gates_asked
from loopwright.core.rows.model import Plan


def known_of_base(plan: Plan) -> dict[str, list[str]]:
    """Return which acceptance failed on a plan's base, and which checks of it the result contradicts."""
    verdict = plan.verdict
    return {
        "red_on_base": list(plan.evaluation.get(RED_ON_BASE, ())),
        "contradicted": list(verdict.contradicted) if verdict else [],
        "allowed_by": list(verdict.allowed_by) if verdict else [],
    }


def red_differences(receipt: Mapping[str, Any]) -> list[str]:
    """Say where an attempt's red proof does not follow from a verdict of the receipt."""
    said = {
        (one["tree"], one["gate_key"], is_red(one["status"], [ran["exit_code"] for ran in one["commands"]]))
        for one in receipt["verdicts"]
    }
    found = []
    for task in receipt["tasks"]:
        key = gate_key(acceptance_of(receipt["plan"], task) or gates_asked(receipt["plan"]))
        for attempt in task["attempts"]:
            facts = attempt["gate_files"]
            if facts is None:
                continue
            if facts["red_seen"] and not any(
                ran["exit_code"] for one in receipt["verdicts"] for ran in one["commands"]
            ):
                found.append(f"no verdict says that tests of task {task['key']!r} failed before its work")
            if facts["red_proof"] is None:
                continue
            if (facts["red_tree"], key, facts["red_proof"]) not in said:
                how = "failed" if facts["red_proof"] else "passed"
                found.append(
                    f"no verdict says that the checks of task {task['key']!r} {how} without its work"
                )
    return found
