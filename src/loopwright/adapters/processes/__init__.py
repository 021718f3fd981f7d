"""Processes that outlive us: starting a keeper, talking to it, reading its files, redacting its output.

Not here: the keeper program itself (`loopwright.keeper`), and sandboxes (`adapters.sandbox`).
"""
