"""Failed tasks: evidence of earlier attempts, the likely cause, the steps of `auto_heal`, and lessons for later tasks.

Not here: retries of an attempt (`core.policy`), and the rows of healing and lessons (`core.rows`).
"""
