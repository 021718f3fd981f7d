"""Alembic's entry: runs the migrations on the connection, and in the transaction, that it is given."""

from alembic import context
from sqlalchemy import Connection

from loopwright.adapters.store.schema import metadata
from loopwright.adapters.store.tables import VERSION_TABLE

connection = context.config.attributes["connection"]
assert isinstance(connection, Connection)
context.configure(
    connection=connection,
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,
    transactional_ddl=True,
)
context.run_migrations()
