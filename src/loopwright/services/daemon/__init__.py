"""The daemon of a home: its worker for all projects, the note with its address, and its start and end.

Not here: HTTP (`server`).
"""
