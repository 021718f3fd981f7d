"""Sandboxes: what keeps agents and gates from the rest of the machine.

Not here: which run gets which sandbox (`engine.processes.sandboxing`).
"""
