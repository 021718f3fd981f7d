"""Opening a home and finding the project around a folder, with the settings in force.

Not here: the files of a home (`adapters.home`), and the settings themselves (`config`).
"""
