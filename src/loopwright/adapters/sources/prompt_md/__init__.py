"""PROMPT.md: one prompt, run round after round.

Not here: the rounds themselves (`core.policy.rounds`, `engine.attempt.rounds`).
"""
