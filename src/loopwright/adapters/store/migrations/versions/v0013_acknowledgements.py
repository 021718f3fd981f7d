"""Add acknowledgements of alerts, and why work is in quarantine."""

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import MOMENT, TEXT

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Bring the tables to this revision."""
    op.create_table(
        "acknowledgements",
        sa.Column("id", TEXT, autoincrement=False, nullable=False),
        sa.Column("actor", TEXT, autoincrement=False, nullable=False),
        sa.Column("created_at", MOMENT, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_acknowledgements")),
    )
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.add_column(sa.Column("quarantined", TEXT, autoincrement=False, nullable=True))
        batch_op.create_index(batch_op.f("ix_attempts_quarantined"), ["quarantined"], unique=False)
