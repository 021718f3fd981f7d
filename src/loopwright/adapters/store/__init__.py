"""The Store: a home's rows and events in SQLite or PostgreSQL.

`sql.SqlStore` is the adapter. `schema` holds the tables, `codec` turns rows into columns and back, `chain` hashes
events, `sqlite` and `postgres` hold what differs between the two databases, `upgrade` creates and migrates them.

Not here: the row types (`core.rows`), and every change of a state (`engine.rows.moves`).
"""
