"""Finding the commits behind items that a source calls finished.

Not here: judging them (`core.plans.auditing`).
"""
