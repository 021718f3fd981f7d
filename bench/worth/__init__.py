"""What each mechanism would be worth if published trials hold: stochastic agents, the product's own decisions.

It proves bounds, not worth: the lift of your own runs is what Loopwright measures.
"""
