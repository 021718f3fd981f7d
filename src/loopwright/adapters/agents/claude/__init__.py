"""Claude Code: starting it, its control protocol, its stream, its quota, and its result.

Not here: what every agent shares (`adapters.agents`).
"""
