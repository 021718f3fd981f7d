"""Following a work source while its plan runs: status write-back, edits by people, heartbeat files.

Not here: the formats themselves (`adapters.sources`), and taking a new plan in (`engine.intake`).
"""
