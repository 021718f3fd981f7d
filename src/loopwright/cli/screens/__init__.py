"""What a terminal shows: tables, tasks, questions, changes, live pictures, next steps.

Not here: the facts that are shown (`engine.views.views`), and how text is printed safely (`cli.shell`).
"""
