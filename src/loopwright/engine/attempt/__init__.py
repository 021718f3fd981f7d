"""One attempt of a task from setup to landing: agent runs, reviews, QA, candidates, tidying up.

Not here: a plan's verification and end (`engine.plans`), and how a gate runs (`engine.gates`).
"""
