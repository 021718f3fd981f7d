"""Send events to webhooks."""

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import MOMENT, TEXT

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Bring the tables to this revision."""
    op.create_table(
        "dead_letters",
        sa.Column("id", TEXT, autoincrement=False, nullable=False),
        sa.Column("webhook_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("n", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("type", TEXT, autoincrement=False, nullable=False),
        sa.Column("error", TEXT, autoincrement=False, nullable=False),
        sa.Column("failures", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("died_at", MOMENT, autoincrement=False, nullable=False),
        sa.Column("replay_at", MOMENT, autoincrement=False, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dead_letters")),
    )
    with op.batch_alter_table("dead_letters", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_dead_letters_webhook_id_n"), ["webhook_id", "n"], unique=True)
        batch_op.create_index(
            batch_op.f("ix_dead_letters_webhook_id_replay_at"), ["webhook_id", "replay_at"], unique=False
        )

    op.create_table(
        "webhooks",
        sa.Column("id", TEXT, autoincrement=False, nullable=False),
        sa.Column("url", TEXT, autoincrement=False, nullable=False),
        sa.Column("secret", TEXT, autoincrement=False, nullable=False),
        sa.Column("projects", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("loop", TEXT, autoincrement=False, nullable=True),
        sa.Column("types", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("cursor", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("failures", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("error", TEXT, autoincrement=False, nullable=False),
        sa.Column("retry_at", MOMENT, autoincrement=False, nullable=True),
        sa.Column("off_at", MOMENT, autoincrement=False, nullable=True),
        sa.Column("sender", TEXT, autoincrement=False, nullable=False),
        sa.Column("sender_until", MOMENT, autoincrement=False, nullable=True),
        sa.Column("created_by", TEXT, autoincrement=False, nullable=False),
        sa.Column("created_at", MOMENT, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
