"""Remember what healing tried."""

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import MOMENT, TEXT

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Bring the tables to this revision."""
    op.create_table(
        "healings",
        sa.Column("id", TEXT, autoincrement=False, nullable=False),
        sa.Column("project_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("plan_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("task_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("n", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("step", TEXT, autoincrement=False, nullable=False),
        sa.Column("state", TEXT, autoincrement=False, nullable=False),
        sa.Column("cause", TEXT, autoincrement=False, nullable=False),
        sa.Column("signature", TEXT, autoincrement=False, nullable=False),
        sa.Column("because", TEXT, autoincrement=False, nullable=False),
        sa.Column("attempt_id", TEXT, autoincrement=False, nullable=True),
        sa.Column("created_at", MOMENT, autoincrement=False, nullable=False),
        sa.Column("ended_at", MOMENT, autoincrement=False, nullable=True),
        sa.ForeignKeyConstraint(
            ["plan_id"], ["plans.id"], name=op.f("fk_healings_plan_id"), initially="DEFERRED", deferrable=True
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_healings_project_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["task_id"], ["tasks.id"], name=op.f("fk_healings_task_id"), initially="DEFERRED", deferrable=True
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_healings")),
    )
    with op.batch_alter_table("healings", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_healings_plan_id"), ["plan_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_healings_task_id_n"), ["task_id", "n"], unique=True)

    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.add_column(sa.Column("healing", TEXT, autoincrement=False, nullable=True))
        batch_op.add_column(sa.Column("advice", TEXT, nullable=False, server_default=""))
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.alter_column("advice", existing_type=TEXT, existing_nullable=False, server_default=None)
