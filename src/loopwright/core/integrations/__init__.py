"""Rules for other services: issues of a forge as work, notices, signed webhooks, and traces.

Not here: sending and asking (`adapters.forge`, `adapters.notify`, `adapters.webhooks`, `adapters.traces`), and when to
do so (`services`).
"""
