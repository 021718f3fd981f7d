"""What is checked before any money is spent: agents, settings, costs, the plan file and the base commit.

Not here: the evaluation of a plan (`services.plans`), and starting a run (`services.runs`).
"""
