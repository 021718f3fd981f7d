"""Agents' replies: how answers, reviews, reports and questions are read and checked.

Not here: prompts (`core.prompts`), and the protocols of single agents (`adapters.agents`).
"""
