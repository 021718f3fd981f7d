"""Keep the order of a source, manual steps, sections and documents."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import TEXT

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Bring the tables to this revision."""
    _add("plans", {"documents": (sa.Text(), "[]")})
    _add(
        "tasks",
        {
            "after": (sa.Text(), "[]"),
            "followers": (sa.Text(), "[]"),
            "early": (sa.Boolean(), sa.false()),
            "manual": (sa.Boolean(), sa.false()),
            "section": (TEXT, ""),
        },
    )
    op.create_index("ix_tasks_plan_id_manual_status", "tasks", ["plan_id", "manual", "status"])


def _add(table: str, columns: dict[str, tuple[Any, Any]]) -> None:
    """Add columns that every row has; the default is only for the rows that exist."""
    with op.batch_alter_table(table) as batch:
        for name, (kind, value) in columns.items():
            batch.add_column(sa.Column(name, kind, nullable=False, server_default=value))
    with op.batch_alter_table(table) as batch:
        for name, (kind, _) in columns.items():
            batch.alter_column(name, existing_type=kind, existing_nullable=False, server_default=None)
