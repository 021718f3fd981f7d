"""Functions that change rows in a transaction, and `World`, the value that everything here works with.

Not here: effects such as processes and git; a function of a transaction may run twice.
"""
