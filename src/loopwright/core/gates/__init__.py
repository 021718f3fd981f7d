"""Which commands judge a tree, what their results mean, and what a verdict is worth.

Not here: which files steer a gate (`core.integrity`), and running the commands (`engine.gates`).
"""
