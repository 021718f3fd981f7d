"""Typed settings: files, environment and flags combined, each value with its origin."""
