"""The rows of a home as frozen values, and the events that tell about them.

Not here: the tables that store them (`adapters.store`) and the functions that change them (`engine.rows`).
"""
