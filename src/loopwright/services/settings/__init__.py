"""The settings in force with their origins, whether all are valid, and the published JSON Schemas.

Not here: how settings are read (`config`), and which of them a plan starts with (`services.homes.context`).
"""
