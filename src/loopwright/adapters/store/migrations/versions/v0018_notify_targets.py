"""Add the rows of the targets of `notify` to those of webhooks."""

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import TEXT

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Bring the tables to this revision."""
    with op.batch_alter_table("webhooks", schema=None) as batch_op:
        batch_op.add_column(sa.Column("target", TEXT, autoincrement=False, nullable=True))
