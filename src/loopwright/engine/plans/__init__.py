"""A plan as a whole: its verification, its end, rollback, export, and rows made again from an export.

Not here: single tasks (`engine.attempt`), and when the next step is due (`engine.worker`).
"""
