"""Check a plan before and after it runs: its shape, its checks on the base commit, its coverage.

Not here: reading plan files (`adapters.sources`), and the record of a finished plan (`core.receipts.build`).
"""
