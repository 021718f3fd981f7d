"""Remember how each attempt failed."""

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import MOMENT, TEXT

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Bring the tables to this revision."""
    op.create_table(
        "attempt_failures",
        sa.Column("id", TEXT, autoincrement=False, nullable=False),
        sa.Column("project_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("plan_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("task_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("attempt_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("n", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("failure", TEXT, autoincrement=False, nullable=False),
        sa.Column("cause", TEXT, autoincrement=False, nullable=True),
        sa.Column("signature", TEXT, autoincrement=False, nullable=False),
        sa.Column("step", TEXT, autoincrement=False, nullable=False),
        sa.Column("test", TEXT, autoincrement=False, nullable=False),
        sa.Column("file", TEXT, autoincrement=False, nullable=False),
        sa.Column("error", TEXT, autoincrement=False, nullable=False),
        sa.Column("created_at", MOMENT, autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(
            ["plan_id"],
            ["plans.id"],
            name=op.f("fk_attempt_failures_plan_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_attempt_failures_project_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["task_id"],
            ["tasks.id"],
            name=op.f("fk_attempt_failures_task_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempt_failures")),
    )
    with op.batch_alter_table("attempt_failures", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_attempt_failures_attempt_id"), ["attempt_id"], unique=True)
        batch_op.create_index(
            batch_op.f("ix_attempt_failures_project_id_signature"), ["project_id", "signature"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_attempt_failures_task_id"), ["task_id"], unique=False)
