"""Executing a plan from the calling process: drive it, or follow the worker that does, until it rests.

Not here: what is checked before that (`services.preflight`), signals and screens (`cli`).
"""
