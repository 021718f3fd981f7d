"""Starting and driving one process: its sandbox, its environment, its secrets, the disk it needs.

Not here: what is made of its result: gates (`engine.gates`) and attempts (`engine.attempt`).
"""
