"""Commands that show what is going on: `status`, `watch`, `logs`, `diff`, `stats`.

Not here: the read models that they show (`engine.views.views`).
"""
