"""The worker: its lease, the tick that applies policy, and bringing rows and reality together.

Not here: what a single step does; this package only starts it.
"""
