"""Taking work in: a source becomes a loop and a plan, and its progress in the words of sources.

Not here: reading files of a format (`adapters.sources`), and writing status back (`engine.sources`).
"""
