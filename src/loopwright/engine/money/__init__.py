"""Accounts, quota and spending: what a run may draw from, and what stops it.

Not here: the pure rules about budgets and quota (`core.policy.budget`, `core.policy.quotas`), and how caps
are shown (`engine.views`).
"""
