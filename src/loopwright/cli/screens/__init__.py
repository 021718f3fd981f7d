"""What a terminal shows: tables, tasks, questions, changes, live pictures, next steps.

Not here: the facts that are shown (`services.views`), and how text is printed safely (`cli.shell`).
`tests/unit/cli/screens/golden_screens.py` holds a sample of each screen.
"""
