"""Keeps one run's process tree, so that it outlives the worker that started it.

Started as a program by path with `python -I -S`, standard library only. It stays small: no import here may pull
in `typing`, `dataclasses`, `subprocess`, `shutil`, `asyncio` or OpenSSL, and nothing is imported later than at the
start, so that an upgrade of the package under a living keeper does no harm.

Not here: starting keepers and reading what they wrote (`adapters.processes`).
"""
