"""Run gates outside a plan: in a clean clone, on a base commit, or on a tree that cannot be loaded.

Not here: gates of a running plan (`engine.gates`).
"""
