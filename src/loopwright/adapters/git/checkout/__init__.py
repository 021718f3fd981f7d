"""The user's own checkout: watched while agents run, and extra checkouts for work done by hand.

Not here: private clones for agents (`git.workspaces`).
"""
