"""Phase plans: an overview and a file for each phase, or all phases in one file.

Not here: checkbox plans (`sources.plan_md`).
"""
