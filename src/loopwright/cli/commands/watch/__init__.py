"""Commands that show what is going on: `status`, `watch`, `show`, `logs`, `metrics`, `flaky`, `quota`.

Not here: the read models that they show (`engine.views.views`).
"""
