"""Receipts as files: written, exported, verified against a repository, and replayed.

Not here: what a receipt says (`core.receipts.build`).
"""
