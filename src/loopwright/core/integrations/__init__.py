"""Rules for other services: issues of a forge as work, notices, and signed webhooks.

Not here: sending and asking (`adapters.forge`, `adapters.notify`, `adapters.webhooks`), and when to do so (`services`).
"""
