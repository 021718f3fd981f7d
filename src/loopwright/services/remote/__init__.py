"""Use cases for callers over the network: one open home, exact ids, and only the projects that the caller may see.

Not here: HTTP (`server`), and the rules themselves, which the other services and the engine have.
"""
