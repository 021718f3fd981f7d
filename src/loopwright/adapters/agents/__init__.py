"""Agents: one folder for each protocol, and what all of them share, such as the tool to ask a person.

Not here: what an agent is told (`core.prompts`), and what follows from its result (`engine.attempt`).
"""
