"""Run gates on trees: once for each tree, compared with a baseline, with second runs of possibly flaky checks.

Not here: what follows from a run (`core.gates.gate_run`), the decision to land (`core.policy.landing`), and
how commands run (`adapters.gates`).
"""
