"""The daemon of a home: its worker for all projects, the note that says where it listens, and its start and end.

Not here: HTTP (`server`).
"""
