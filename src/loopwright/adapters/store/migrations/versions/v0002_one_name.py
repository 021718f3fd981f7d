"""Give the stored policies the names of their settings, and drop a column that nothing ever wrote."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_POLICY = {
    "answer_within_s": "answer_within",
    "setup_timeout_s": "setup_timeout",
    "host_lost_after_s": "host_lost_after",
    "longest_wait_s": "longest_wait",
    "max_cost_micros": "max_cost",
    "max_run_cost_micros": "max_cost_per_run",
    "max_task_cost_micros": "max_cost_per_task",
    "max_loop_cost_micros": "max_cost_per_loop",
    "max_project_cost_micros": "max_cost_per_project",
    "max_day_cost_micros": "max_cost_per_day",
    "reserve_run_cost_micros": "reserve_per_run",
    "agent_options": "agents",
}
_ROUNDS = {"sleep_s": "sleep", "stop_after_s": "stop_after"}
_LIMITS = {
    "hard_s": "hard",
    "idle_s": "idle",
    "done_grace_s": "done_grace",
    "term_grace_s": "term_grace",
    "output_bytes": "output",
}


def upgrade() -> None:
    """Bring the tables to this revision."""
    plans = sa.table("plans", sa.column("id", sa.Text), sa.column("policy", sa.Text))
    connection = op.get_bind()
    for id_, text in connection.execute(sa.select(plans.c.id, plans.c.policy)).all():
        policy = _renamed(json.loads(text), _POLICY)
        for part, names in (("rounds", _ROUNDS), ("limits", _LIMITS)):
            if part in policy:
                policy[part] = _renamed(policy[part], names)
        connection.execute(plans.update().where(plans.c.id == id_).values(policy=json.dumps(policy)))
    op.drop_column("plans", "verify_worker_id")


def _renamed(value: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names.get(name, name): one for name, one in value.items()}
