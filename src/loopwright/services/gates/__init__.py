"""Running gates outside of a plan: in a clean clone, on a base commit, or on a tree that cannot load.

Not here: gates of a running plan (`engine.gates`).
"""
