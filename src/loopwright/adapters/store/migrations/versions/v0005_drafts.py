"""Add drafts that agents write, evaluations outside of the verification, and indexes for lists."""

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import TEXT

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Bring the tables to this revision."""
    with op.batch_alter_table("plans", schema=None) as batch_op:
        batch_op.add_column(sa.Column("evaluating", sa.Boolean(), nullable=False, server_default=sa.false()))
        batch_op.add_column(sa.Column("wish", sa.Text(), autoincrement=False, nullable=True))
        batch_op.add_column(sa.Column("made_for", TEXT, autoincrement=False, nullable=True))
        batch_op.add_column(sa.Column("packet_id", TEXT, autoincrement=False, nullable=True))
        batch_op.add_column(sa.Column("source_run_id", TEXT, autoincrement=False, nullable=True))
        batch_op.add_column(sa.Column("replaces", TEXT, autoincrement=False, nullable=True))
        batch_op.create_index(batch_op.f("ix_plans_created_at_id"), ["created_at", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_plans_made_for"), ["made_for"], unique=False)

    with op.batch_alter_table("plans", schema=None) as batch_op:
        batch_op.alter_column(
            "evaluating", existing_type=sa.Boolean(), existing_nullable=False, server_default=None
        )

    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_runs_plan_id"))
        batch_op.create_index(
            batch_op.f("ix_runs_plan_id_created_at"), ["plan_id", "created_at"], unique=False
        )
