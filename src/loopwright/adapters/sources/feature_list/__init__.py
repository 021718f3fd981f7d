"""Features in a feature_list.json, with their QA fixes.

Not here: what other formats share (`sources.text`).
"""
