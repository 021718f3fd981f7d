"""Running gates on trees: once for each tree, against a baseline, with reruns of what may be flaky.

Not here: the decision to land (`engine.attempt.attempt`), and how commands are run (`adapters.gates`).
"""
