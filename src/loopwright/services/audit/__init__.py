"""What proves finished work: the commits and checks behind items that a source calls finished, and behind criteria.

Not here: judging them (`core.plans`).
"""
