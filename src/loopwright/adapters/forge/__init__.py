"""`ports.Forge` for GitHub and GitLab, over their HTTP interfaces.

Not here: when a pull request is opened (`engine.plans.finish`), and what it says (`core.policy.finishing`).
"""
