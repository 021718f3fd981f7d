"""The first schema, as the SQL of each database: nothing that changes later can change it."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Bring the tables to this revision."""
    dialect = op.get_bind().dialect.name
    script = Path(__file__).with_name(f"v0001_first.{dialect}.sql").read_text(encoding="utf-8")
    for statement in script.split(";\n"):
        if statement.strip():
            op.execute(statement)
