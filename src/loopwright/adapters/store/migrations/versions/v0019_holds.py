"""Add what loops hold and wait for."""

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import MOMENT, TEXT

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Bring the tables to this revision."""
    op.create_table(
        "holds",
        sa.Column("id", TEXT, autoincrement=False, nullable=False),
        sa.Column("project_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("loop_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("plan_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("task_id", TEXT, autoincrement=False, nullable=True),
        sa.Column("lock", TEXT, autoincrement=False, nullable=False),
        sa.Column("paths", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("state", TEXT, autoincrement=False, nullable=False),
        sa.Column("waits_for", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("after", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("reason", TEXT, autoincrement=False, nullable=False),
        sa.Column("created_at", MOMENT, autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(
            ["loop_id"], ["loops.id"], name=op.f("fk_holds_loop_id"), initially="DEFERRED", deferrable=True
        ),
        sa.ForeignKeyConstraint(
            ["plan_id"], ["plans.id"], name=op.f("fk_holds_plan_id"), initially="DEFERRED", deferrable=True
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_holds_project_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_holds")),
    )
    with op.batch_alter_table("holds", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_holds_plan_id"), ["plan_id"], unique=False)
