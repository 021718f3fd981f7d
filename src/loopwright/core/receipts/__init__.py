"""The record of a plan that anyone can verify: its shape, its facts, and what follows from them.

Not here: collecting the facts from rows and git (`engine.branch`), and finding them again (`adapters.home`).
"""
