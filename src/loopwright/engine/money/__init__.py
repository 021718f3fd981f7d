"""Accounts, quota and spending: what a run may draw from, and what stops it.

Not here: the pure rules about budgets (`core.values.policy`), and how caps are shown (`engine.views.views`).
"""
