"""Starting legs: in this process (`local`), or on many machines through DBOS and PostgreSQL (`dbos`).

Not here: which leg is due (`engine.worker`), and what a leg does (`engine.attempt`, `engine.plans`).
"""
