"""Print a migration for what changed in the tables.

    python tests/migrations/render.py 0002 "What changed." > v0002_what.py

Then read it, put it into the store's `migrations/versions`, run `ruff format` on it, add the revision to
`tables.REVISIONS`, and run `python -m tests.migrations.release`. Never change an older migration.
"""

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from alembic.autogenerate.api import produce_migrations, render_python_code
from alembic.migration import MigrationContext

from loopwright.adapters.store.schema import TEXT, Moment, metadata
from loopwright.adapters.store.sqlite import SqliteBackend
from loopwright.adapters.store.tables import VERSION_TABLE
from loopwright.adapters.store.upgrade import HISTORY, migrate


def _render_type(kind: str, item: Any, _context: Any) -> str | bool:
    if kind == "type" and isinstance(item, Moment):
        return "MOMENT"
    return "TEXT" if item is TEXT else False


def render(revision: str, summary: str) -> str:
    """Return the text of a migration from the newest one to the tables as they are."""
    with TemporaryDirectory() as directory:
        backend = SqliteBackend(Path(directory) / "home.db", patience=1, create=True)
        with backend.upgrading() as connection:
            migrate(connection, HISTORY)
        with backend.engine.connect() as connection:
            context = MigrationContext.configure(
                connection, opts={"version_table": VERSION_TABLE, "render_item": _render_type}
            )
            operations = produce_migrations(context, metadata).upgrade_ops
            assert operations is not None
            body = render_python_code(operations, render_as_batch=True, render_item=_render_type)
        backend.engine.dispose()
    lines = [line for line in body.splitlines() if not line.strip().startswith("#")]
    steps = re.sub(r"^(?=op\.|with )", "    ", "\n".join(lines), flags=re.MULTILINE)
    return f'''"""{summary}"""

import sqlalchemy as sa
from alembic import op

from loopwright.adapters.store.schema import MOMENT, TEXT

revision = "{revision}"
down_revision = "{HISTORY.head}"


def upgrade() -> None:
    """Bring the tables to this revision."""
{steps}
'''


if __name__ == "__main__":
    sys.stdout.write(render(sys.argv[1], sys.argv[2]))
