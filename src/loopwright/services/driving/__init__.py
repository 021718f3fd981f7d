"""Execute a plan from the calling process: drive it, or follow the worker that does, until it rests.

Not here: earlier checks (`services.preflight`), signals and screens (`cli`).
"""
