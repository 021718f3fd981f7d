"""Intake of work: a source becomes a loop and a plan, and its progress becomes status for sources.

Not here: reading files of a format (`adapters.sources`), and writing status back (`engine.sources`).
"""
