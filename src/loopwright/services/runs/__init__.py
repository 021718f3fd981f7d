"""Prepare a run and submit it: its last plan, unknown work, its evaluation, its submission.

Not here: single checks (`services.preflight`), driving the plan (`services.driving`), the work itself (`engine`).
"""
