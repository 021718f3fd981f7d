"""One attempt of a task from setup to landing: agent runs, reviews, QA, candidates, cleanup.

Not here: a plan's verification and finish (`engine.plans`), and how a gate runs (`engine.gates`).
"""
