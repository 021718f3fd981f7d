"""Start and drive one process: its sandbox, its environment, its secrets, the disk space that it needs.

Not here: what follows from its result: gates (`engine.gates`) and attempts (`engine.attempt`).
"""
