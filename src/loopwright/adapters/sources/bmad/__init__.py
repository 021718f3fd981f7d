"""BMAD: one story with its tasks, or a sprint-status.yaml with all stories.

Not here: what other forms of Markdown and YAML share (`sources.checklists`, `sources.text`).
"""
