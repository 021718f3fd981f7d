"""Send signed messages to receivers of webhooks, and to no address that a receiver may not have.

Not here: when to send what (`services.webhooks`), and what follows from an answer (`core.integrations.webhooks`).
"""
