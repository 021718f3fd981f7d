"""Note which lesson of another project a lesson was taken from."""

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import TEXT

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Bring the tables to this revision."""
    with op.batch_alter_table("attempt_failures", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_attempt_failures_signature"), ["signature"], unique=False)

    with op.batch_alter_table("lessons", schema=None) as batch_op:
        batch_op.add_column(sa.Column("learned_from", TEXT, nullable=False, server_default=""))
    with op.batch_alter_table("lessons", schema=None) as batch_op:
        batch_op.alter_column(
            "learned_from", existing_type=TEXT, existing_nullable=False, server_default=None
        )
