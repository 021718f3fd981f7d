"""What is known of the quota of agents' accounts.

Not here: the rules about accounts (`core.policy.quotas`), and the rows (`engine.money`).
"""
