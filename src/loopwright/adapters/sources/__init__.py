"""Work sources: one folder for each format, and how a path is matched to its format.

Not here: when a source is read or written back (`engine.intake`, `engine.sources`).
"""
