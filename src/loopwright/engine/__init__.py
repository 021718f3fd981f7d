"""Carries out what the core decides: moves rows, runs agents and gates, lands work.

Not here: pure rules (`core`), access to the machine (`adapters`), and anything that prints (`cli`).
"""
