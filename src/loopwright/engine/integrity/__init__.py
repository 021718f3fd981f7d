"""Find the judging files of a candidate, and its suspicious places.

Not here: running the gate (`engine.gates`), and the pure rules (`core.integrity`).
"""
