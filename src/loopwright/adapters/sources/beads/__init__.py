"""Issues of a beads tracker: its JSON lines file, and the program `bd`.

Not here: what other formats share (`sources.text`).
"""
