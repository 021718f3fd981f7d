"""Running a gate's commands on a tree, and recording what their test runners did.

`commands` is the adapter, `runner` the program that it starts, `inside` what runs in test runners.

Not here: what follows from the records (`core.gates`), and when a gate runs (`engine.gates`).
"""
