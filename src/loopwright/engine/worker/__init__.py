"""The worker: its lease, the tick that applies policy, and reconciling rows with reality.

Not here: what a single step does; this package only starts it.
"""
