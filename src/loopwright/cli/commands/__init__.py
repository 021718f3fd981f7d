"""The commands, grouped as `--help` groups them: start, watch, decide, inspect, maintain.

Not here: layout of what they show (`cli.screens`), and use cases (`services`).
"""
