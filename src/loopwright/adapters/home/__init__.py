"""The files of a home and of a project's state directory: membership, state files, caches, run evidence.

Not here: the database (`adapters.store`), and locating the home from settings (`config.home`).
"""
