"""Plan branches: candidates, landings, pins, the end of a plan, and proof that work has arrived.

Not here: workspaces (`git.workspaces`), and the user's own checkout (`git.checkout`).
"""
