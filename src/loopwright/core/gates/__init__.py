"""Which commands check a tree, what their results mean, and what a verdict proves.

Not here: which files affect a gate (`core.integrity`), and running the commands (`engine.gates`).
"""
