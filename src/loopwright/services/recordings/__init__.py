"""What agents and gates printed: finding it for a task or a plan, and deleting it.

Not here: showing it (`cli.screens`), and automatic retention (`engine.people`).
"""
