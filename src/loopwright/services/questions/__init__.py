"""Questions that agents and Loopwright ask you: list them and answer them.

Not here: the other decisions (`services.control`), what an answer does to rows (`engine.rows.questions`).
"""
