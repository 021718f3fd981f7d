"""Private clones for agents and gates: made, filled, recorded as snapshots, deleted.

Not here: what lands on a branch (`git.branches`).
"""
