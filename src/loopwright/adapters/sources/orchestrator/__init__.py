"""An orchestrator's roadmap: its bundle, its milestones, and closing them.

Not here: what other formats share (`sources.text`).
"""
