"""Open a home and find the project around a folder, with the current settings.

Not here: the files of a home (`adapters.home`), and the settings themselves (`config`).
"""
