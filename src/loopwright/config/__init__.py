"""Typed settings: files, environment and flags combined, each value with its origin.

`loopwright.config.home` is light. `loopwright.config.resolve` loads pydantic; import it where settings are
needed, not where a program starts.
"""
