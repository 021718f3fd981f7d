"""The rows of a home as frozen values, the events that tell about them, and rows as plain documents.

Not here: the tables that store them (`adapters.store`) and the functions that change them (`engine.rows`).
"""
