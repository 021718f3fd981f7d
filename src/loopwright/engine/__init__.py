"""Carry out the decisions of the core: change rows, run agents and gates, land work.

Not here: pure rules (`core`), access to the machine (`adapters`), and anything that prints (`cli`).
"""
