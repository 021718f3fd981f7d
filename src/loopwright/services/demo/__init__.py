"""The demonstration: a sample repository, a scripted agent, and what their records show afterwards.

Not here: the commands that run in it, and what is printed (`cli.commands.start.demo`).
"""
