"""Everything before a plan runs: preflight, its last plan, its costs, its submission.

Not here: evaluating or writing a plan (`services.plans`), and doing the work (`engine`).
"""
