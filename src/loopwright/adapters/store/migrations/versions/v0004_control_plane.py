"""Add tokens, kept replies, recorded environments, drafts and starts that were asked for."""

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import MOMENT, TEXT

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Bring the tables to this revision."""
    op.create_table(
        "kept_replies",
        sa.Column("id", TEXT, autoincrement=False, nullable=False),
        sa.Column("request_sha256", TEXT, autoincrement=False, nullable=False),
        sa.Column("status", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("body", TEXT, autoincrement=False, nullable=False),
        sa.Column("server", TEXT, autoincrement=False, nullable=False),
        sa.Column("created_at", MOMENT, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kept_replies")),
    )
    with op.batch_alter_table("kept_replies", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_kept_replies_created_at"), ["created_at"], unique=False)

    op.create_table(
        "tokens",
        sa.Column("id", TEXT, autoincrement=False, nullable=False),
        sa.Column("name", TEXT, autoincrement=False, nullable=False),
        sa.Column("sha256", TEXT, autoincrement=False, nullable=False),
        sa.Column("scope", TEXT, autoincrement=False, nullable=False),
        sa.Column("projects", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("created_at", MOMENT, autoincrement=False, nullable=False),
        sa.Column("revoked_at", MOMENT, autoincrement=False, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
    )
    with op.batch_alter_table("tokens", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_tokens_sha256"), ["sha256"], unique=False)

    with op.batch_alter_table("loops", schema=None) as batch_op:
        batch_op.add_column(sa.Column("start", sa.Text(), autoincrement=False, nullable=True))

    with op.batch_alter_table("plans", schema=None) as batch_op:
        batch_op.add_column(sa.Column("verify_asked_at", MOMENT, autoincrement=False, nullable=True))

    with op.batch_alter_table("projects", schema=None) as batch_op:
        batch_op.add_column(sa.Column("environment", sa.Text(), autoincrement=False, nullable=True))
