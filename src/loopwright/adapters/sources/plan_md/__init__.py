"""Checkbox plans: `plan.md` alone, or in a track's folder with its specification and metadata.

Not here: phase plans over several files (`sources.thoughts`).
"""
