"""Prompts for agents and reviewers, built from rows alone.

Not here: how an agent's reply is read (`core.replies`), and how a prompt reaches a program
(`adapters.agents`).
"""
