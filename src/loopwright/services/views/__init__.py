"""What a home shows now: plans, tasks, runs, events, and what each of them changed.

Not here: what agents and gates printed (`services.recordings`), and how any of it looks on a screen (`cli.screens`).
"""
