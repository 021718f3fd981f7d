"""Tasks of a Task Master tasks.json, tagged or not.

Not here: what other formats share (`sources.text`).
"""
