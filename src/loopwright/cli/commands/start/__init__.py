"""Commands that begin work: `init`, `plan`, `run`, `worker`, `demo`.

Not here: what happens before a run (`services.runs`).
"""
