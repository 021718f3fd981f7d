"""The plan branch: where it is, which commits on it are ours, and the receipt made from it.

Not here: git commands (`adapters.git`), and landing a candidate (`engine.attempt`).
"""
