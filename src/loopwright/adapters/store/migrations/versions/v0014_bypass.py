"""Remember which tasks a bypass leaves out."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Bring the tables to this revision."""
    with op.batch_alter_table("healings", schema=None) as batch_op:
        batch_op.add_column(sa.Column("about", sa.Text(), nullable=False, server_default="[]"))
    with op.batch_alter_table("healings", schema=None) as batch_op:
        batch_op.alter_column("about", existing_type=sa.Text(), existing_nullable=False, server_default=None)
