"""PROMPT.md: one prompt, run round after round.

Not here: the rounds themselves (`core.values.policy.rounds`, `engine.attempt.attempt.rounds`).
"""
