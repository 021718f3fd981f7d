"""Commands that show what happens: `status`, `watch`, `logs`, `diff`, `stats`.

Not here: the facts that they show (`services.views`), and the layout (`cli.screens`, with golden screens in
`tests/unit/cli/screens`).
"""
