"""Loopwright's own plan format in YAML or JSON, its versions, and the part of it that planners answer.

Not here: what other formats share (`sources.text`).
"""
