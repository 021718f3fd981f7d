"""The user's actions on a plan: commands, retries, manual steps, take-over, locks, QA decisions, discoveries, cleanup.

Not here: parsing a command line (`cli`), and carrying out a rollback in git (`engine.plans`).
"""
