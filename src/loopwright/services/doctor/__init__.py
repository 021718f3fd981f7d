"""Checks of this machine: agents, accounts, sandbox, home, project, forge.

Not here: printing the result (`cli.commands.maintain`).
"""
