"""Follow a work source while its plan runs: status write-back, edits by the user, heartbeat files.

Not here: the formats themselves (`adapters.sources`), and intake of a new plan (`engine.intake`).
"""
