"""Pure values, transition tables and decisions: no clock, no I/O, standard library only.

Not here: effects (`engine`), and anything that reads the outside world (`ports`, `adapters`).
"""
