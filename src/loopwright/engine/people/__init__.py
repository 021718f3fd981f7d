"""What people ask of a plan: commands, take-over, QA decisions, discoveries, cleaning up.

Not here: parsing a command line (`cli`), and carrying out a rollback in git (`engine.plans`).
"""
