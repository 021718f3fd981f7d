"""Read models: plans, tasks, questions, caps and metrics for people and programs.

Not here: anything that changes a row, and layout on a terminal (`cli.screens`).
"""
