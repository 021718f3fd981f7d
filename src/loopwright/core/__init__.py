"""The pure heart: values, transition tables and decisions. No clock, no I/O, standard library only.

Not here: effects (`engine`), and anything that asks the world (`ports`, `adapters`).
"""
