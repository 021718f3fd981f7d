"""The command line: `main` finds and runs a command, `foreground` works on a plan in the foreground.

Not here: use cases (`services`); a command parses its arguments, calls a service and shows the result.
"""
