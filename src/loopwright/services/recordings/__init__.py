"""Recordings of agents and gates: find them for a task or a plan, and delete them.

Not here: showing them (`cli.screens`), and automatic retention (`engine.people`).
"""
