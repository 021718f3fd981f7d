"""What agents return: how their answers, reviews, reports and questions are read and checked.

Not here: what agents are told (`core.prompts`), and the protocols of single agents (`adapters.agents`).
"""
