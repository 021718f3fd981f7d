"""Plans before they run: written by a planner, evaluated by an agent, and compared with their sources.

Not here: the pure rules about plans (`core.plans`), and starting a run (`services.runs`).
"""
