"""Running git safely and the smallest facts about it: refs, names, commits, patches, git directories.

Not here: anything about plans, workspaces or the user's checkout.
"""
