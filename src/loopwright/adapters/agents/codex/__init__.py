"""Codex: its app server as a conversation, and `codex exec` for where that cannot be had.

Not here: what every agent has in common (`adapters.agents`), and when a run starts (`engine.attempt`).
"""
