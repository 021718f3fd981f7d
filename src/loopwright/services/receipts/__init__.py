"""Receipts as files: written, exported, verified against a repository, and replayed.

Not here: the content of a receipt (`core.receipts.build`).
"""
