"""Issues of a GitHub repository, as `gh issue list --json` exports them.

Not here: talking to GitHub (`adapters.forge`).
"""
