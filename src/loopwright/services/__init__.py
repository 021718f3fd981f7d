"""Use cases, values in and values out: what every face of Loopwright calls.

Not here: parsing arguments, printing and exit codes (`cli`), and rules (`core`).
"""
