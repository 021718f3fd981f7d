"""The current state of a home: plans, tasks, runs, events, and their changes.

Not here: the output of agents and gates (`services.recordings`), and layout on a screen (`cli.screens`).
"""
