"""Webhooks: make, list, remove and replay them, and send events to their receivers.

The log of events is the outbox: a row per receiver says how far it has come. Not here: HTTP (`adapters.webhooks`), and
what follows from an answer (`core.policy.webhooks`).
"""
