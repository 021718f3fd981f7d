"""What is known of the quota of agents' accounts.

Not here: the rules about accounts (`core.values.policy`), and the rows (`engine.money`).
"""
