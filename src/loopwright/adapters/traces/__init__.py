"""Export spans with the OpenTelemetry SDK, an extra.

Not here: which events make a span (`core.integrations.traces`), and when to send it (`services.tracing`).
"""
