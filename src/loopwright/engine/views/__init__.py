"""Read models: plans, tasks, questions, caps and metrics as people and programs see them.

Not here: anything that changes a row, and layout on a terminal (`cli.screens`).
"""
