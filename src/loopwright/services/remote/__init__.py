"""Use cases for callers over the network: one open home, exact ids, and only the projects that the caller can see.

Not here: HTTP (`server`), and the rules, which are in the other services and the engine.
"""
