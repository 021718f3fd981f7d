"""Tests to make pass, listed in a test-state.json with its config.json.

Not here: what other formats share (`sources.text`).
"""
