"""Drives coding agents over a plan until the project's own checks pass, and keeps the proof."""

__version__ = "0.1.0"
