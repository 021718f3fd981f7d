"""Order the plans of a project by an index."""

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Bring the tables to this revision."""
    with op.batch_alter_table("plans", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_plans_project_id_created_at_id"), ["project_id", "created_at", "id"], unique=False
        )
