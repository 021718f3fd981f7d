"""Accounts, quota and spending: which account a run may use, what stops it, and what a limited token has spent.

Not here: the pure rules about budgets and quota (`core.policy.budget`, `core.policy.quotas`), and how limits
are shown (`engine.views`).
"""
