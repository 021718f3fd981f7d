"""Which files of a candidate steer its gate, and where its changes look suspicious.

Not here: running the gate (`engine.gates`), and the pure rules (`core.integrity`).
"""
