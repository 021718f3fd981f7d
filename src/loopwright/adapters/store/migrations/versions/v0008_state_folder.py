"""Say where the state files of a project are written."""

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import TEXT

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Bring the tables to this revision."""
    with op.batch_alter_table("projects", schema=None) as batch_op:
        batch_op.add_column(sa.Column("state_folder", TEXT, nullable=False, server_default=".loopwright"))
    with op.batch_alter_table("projects", schema=None) as batch_op:
        batch_op.alter_column(
            "state_folder", existing_type=TEXT, existing_nullable=False, server_default=None
        )
