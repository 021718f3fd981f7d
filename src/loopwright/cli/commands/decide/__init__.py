"""Commands by which you decide: `answer`, `pause`, `retry`, `reject`, `accept`, `take-over` and more.

Not here: what a decision does to rows (`engine.people`).
"""
