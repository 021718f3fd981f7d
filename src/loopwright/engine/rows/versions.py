"""The version of a plan or a loop: it changes with every change that a reader could see."""

import json
from hashlib import sha256
from typing import Any

from loopwright.core.rows.model import Loop, Plan, Task
from loopwright.core.values.documents import document
from loopwright.core.values.errors import Refused
from loopwright.ports import Tx


def plan_version(tx: Tx, plan: Plan) -> str:
    """Return the version of a plan with its tasks."""
    tasks = tx.find(Task, plan_id=plan.id, order_by=("position",))
    return _hash([document(plan), [document(task) for task in tasks]])


def loop_version(loop: Loop) -> str:
    """Return the version of a loop."""
    return _hash(document(loop))


def check_version(tx: Tx, target: str, expected: str) -> None:
    """Refuse a change by a caller that saw an older version of a loop, or of a plan with its tasks."""
    loop, task = tx.get(Loop, target), tx.get(Task, target)
    plan = tx.get(Plan, task.plan_id if task else target)
    now = loop_version(loop) if loop else plan_version(tx, plan) if plan else None
    if now is not None and now != expected:
        raise Refused(
            "it was changed since you read it",
            code="version_changed",
            hint="read it again, and repeat the request with its new ETag",
        )


def _hash(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:32]
