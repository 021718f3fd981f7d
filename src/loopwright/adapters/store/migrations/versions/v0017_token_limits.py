"""Add spending limits and nesting depths of tokens, and what is charged to them."""

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import TEXT

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Bring the tables to this revision."""
    op.create_table(
        "charges",
        sa.Column("id", TEXT, autoincrement=False, nullable=False),
        sa.Column("token_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("subject_id", TEXT, autoincrement=False, nullable=False),
        sa.Column("depth", sa.BigInteger(), autoincrement=False, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_charges")),
    )
    with op.batch_alter_table("charges", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_charges_subject_id"), ["subject_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_charges_token_id"), ["token_id"], unique=False)

    with op.batch_alter_table("tokens", schema=None) as batch_op:
        batch_op.add_column(sa.Column("limit_micros", sa.BigInteger(), autoincrement=False, nullable=True))
        batch_op.add_column(sa.Column("nesting", sa.BigInteger(), autoincrement=False, nullable=True))
        batch_op.add_column(sa.Column("maker_id", TEXT, autoincrement=False, nullable=True))
