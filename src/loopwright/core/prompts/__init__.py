"""What agents and reviewers are told, built from rows alone.

Not here: how an agent's reply is read (`core.replies`), and how a prompt reaches a program (`adapters.agents`).
"""
