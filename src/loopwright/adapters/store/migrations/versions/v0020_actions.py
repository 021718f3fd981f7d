"""Add what agents did with their tools."""

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import MOMENT, TEXT

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Bring the tables to this revision."""
    op.create_table(
        "actions",
        sa.Column("id", TEXT, autoincrement=False, nullable=False),
        sa.Column("project_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("kind", TEXT, autoincrement=False, nullable=False),
        sa.Column("loop_id", TEXT, autoincrement=False, nullable=True),
        sa.Column("plan_id", TEXT, autoincrement=False, nullable=True),
        sa.Column("task_id", TEXT, autoincrement=False, nullable=True),
        sa.Column("reason", TEXT, autoincrement=False, nullable=False),
        sa.Column("actor", TEXT, autoincrement=False, nullable=False),
        sa.Column("run_id", TEXT, autoincrement=False, nullable=True),
        sa.Column("state", TEXT, autoincrement=False, nullable=False),
        sa.Column("about", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("result", TEXT, autoincrement=False, nullable=False),
        sa.Column("created_at", MOMENT, autoincrement=False, nullable=False),
        sa.Column("undone_at", MOMENT, autoincrement=False, nullable=True),
        sa.Column("undone_by", TEXT, autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_actions_project_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_actions")),
    )
    with op.batch_alter_table("actions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_actions_created_at_id"), ["created_at", "id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_actions_project_id_created_at_id"),
            ["project_id", "created_at", "id"],
            unique=False,
        )

    with op.batch_alter_table("tokens", schema=None) as batch_op:
        batch_op.add_column(sa.Column("steers", sa.Boolean(), nullable=False, server_default=sa.false()))
    with op.batch_alter_table("tokens", schema=None) as batch_op:
        batch_op.alter_column(
            "steers", existing_type=sa.Boolean(), existing_nullable=False, server_default=None
        )
