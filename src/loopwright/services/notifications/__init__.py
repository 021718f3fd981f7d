"""Notices of what happens in a home, sent to the targets of the setting `notify`.

The log of events is the outbox, as for webhooks: a row per target says how far it has come.
Not here: what is said (`core.integrations.notices`), and Apprise (`adapters.notify`).
"""
