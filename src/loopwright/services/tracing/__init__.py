"""Traces of plans, sent to the collector of the setting `otlp_endpoint`.

The log of events is the outbox, as for webhooks: a row says how far the collector has come.
Not here: which spans there are (`core.integrations.traces`), and OpenTelemetry (`adapters.traces`).
"""
