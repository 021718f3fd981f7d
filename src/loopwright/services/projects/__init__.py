"""The repositories of a home: list them, import their plans, restore a backup, delete what ended plans left.

Not here: how rows are rebuilt (`engine.plans`), how branches are deleted (`adapters.git`).
"""
