"""Commands that show what happens: `status`, `watch`, `logs`, `diff`, `stats`.

Not here: the read models that they show (`engine.views.views`).
"""
