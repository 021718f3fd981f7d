"""What needs the user and what happened, for callers over the network: alerts, progress, costs, figures and reports.

Not here: changes (`services.remote`), pages (`services.dashboard`), and how a report is sent (`server`).
"""
