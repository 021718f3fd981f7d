"""Accounts, quota and spending: which account a run may use, and what stops it.

Not here: the pure rules about budgets and quota (`core.policy.budget`, `core.policy.quotas`), and how limits
are shown (`engine.views`).
"""
