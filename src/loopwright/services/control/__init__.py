"""Decisions about plans and tasks: pause, retry, reject, roll back, take over, accept and more.

Not here: answers to questions (`services.questions`), what a decision does to rows (`engine.people`).
"""
