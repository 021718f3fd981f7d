"""Webhooks: create, list, remove and replay them, and send events to their receivers.

The event log is the outbox: each receiver's row stores its position. Not here: HTTP (`adapters.webhooks`),
and what follows from an answer (`core.integrations.webhooks`).
"""
