"""Evidence for finished work: the commits and checks behind items that a source marks as finished, and behind criteria.

Not here: judging them (`core.plans`).
"""
