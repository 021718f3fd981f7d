"""Plans before they run: checked, written by a planner, evaluated by an agent, compared with their sources.

Not here: the pure rules about plans (`core.plans`), and starting a run (`services.runs`).
"""
