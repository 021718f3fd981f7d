"""The dashboard: HTML pages over `services.dashboard`, forms that call `services.remote`, and drawings as SVG.

Not here: rules about plans (`services`), and JSON (`server.api`).
"""
