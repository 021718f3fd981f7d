"""The contract `orchestrator-v2` as pure functions: its records, its files, its next action and its end.

Not here: reading and writing files, and the state tables (`core.values.round_states`).
"""
