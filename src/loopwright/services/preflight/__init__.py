"""Checks before any cost: agents, settings, limits, the plan file and the base commit.

Not here: the evaluation of a plan (`services.plans`), and starting a run (`services.runs`).
"""
