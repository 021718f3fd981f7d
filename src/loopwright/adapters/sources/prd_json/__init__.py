"""User stories in a Ralph prd.json.

Not here: what other formats share (`sources.text`).
"""
