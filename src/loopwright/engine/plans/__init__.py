"""A plan as a whole: its verification, its finish, rollback, export, and restoring rows from an export.

Not here: single tasks (`engine.attempt`), and when the next step is due (`engine.worker`).
"""
