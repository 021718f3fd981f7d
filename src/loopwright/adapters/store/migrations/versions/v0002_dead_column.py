"""Drop a column that nothing ever wrote."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Bring the tables to this revision."""
    op.drop_column("plans", "verify_worker_id")
