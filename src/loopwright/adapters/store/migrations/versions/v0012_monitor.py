"""Keep what the monitor sees and finds."""

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import MOMENT, TEXT

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Bring the tables to this revision."""
    op.create_table(
        "troubles",
        sa.Column("id", TEXT, autoincrement=False, nullable=False),
        sa.Column("kind", TEXT, autoincrement=False, nullable=False),
        sa.Column("severity", TEXT, autoincrement=False, nullable=False),
        sa.Column("project_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("loop_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("plan_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("task_id", TEXT, autoincrement=False, nullable=True),
        sa.Column("run_id", TEXT, autoincrement=False, nullable=True),
        sa.Column("message", TEXT, autoincrement=False, nullable=False),
        sa.Column("hint", TEXT, autoincrement=False, nullable=False),
        sa.Column("since", MOMENT, autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(
            ["loop_id"], ["loops.id"], name=op.f("fk_troubles_loop_id"), initially="DEFERRED", deferrable=True
        ),
        sa.ForeignKeyConstraint(
            ["plan_id"], ["plans.id"], name=op.f("fk_troubles_plan_id"), initially="DEFERRED", deferrable=True
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_troubles_project_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_troubles")),
    )
    op.create_table(
        "watched",
        sa.Column("id", TEXT, autoincrement=False, nullable=False),
        sa.Column("plan_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("progress", TEXT, autoincrement=False, nullable=False),
        sa.Column("since", MOMENT, autoincrement=False, nullable=False),
        sa.Column("looks", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("idle_looks", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seen_at", MOMENT, autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(
            ["plan_id"], ["plans.id"], name=op.f("fk_watched_plan_id"), initially="DEFERRED", deferrable=True
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_watched")),
    )
