"""Add settings of loops, and loops that are deleted but keep their plans."""

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import MOMENT

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Bring the tables to this revision."""
    with op.batch_alter_table("loops", schema=None) as batch_op:
        batch_op.add_column(sa.Column("settings", sa.Text(), autoincrement=False, nullable=True))
        batch_op.add_column(sa.Column("deleted_at", MOMENT, autoincrement=False, nullable=True))
