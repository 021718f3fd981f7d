"""How well plans went: attempts, time, cost, first-pass rate, and flaky checks.

Not here: how the figures are computed (`engine.views`, `engine.gates`).
"""
