"""The plan branch: its tip, which commits on it are Loopwright's, and the receipt made from it.

Not here: git commands (`adapters.git`), and landing a candidate (`engine.attempt`).
"""
