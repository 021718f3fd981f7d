"""Basic values: ids, states, errors, failures, findings, paths, documents.

Not here: rows of the database (`core.rows`) and any rule about what happens next (`core.policy`).
"""
