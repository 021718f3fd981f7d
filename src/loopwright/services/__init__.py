"""Use cases, values in and values out: every interface of Loopwright calls these.

Not here: parsing arguments, printing and exit codes (`cli`), and rules (`core`).
"""
