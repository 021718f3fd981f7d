"""Commands that keep a machine and a home in order: `doctor`, `clean`, `projects`, `config`, `help`.

Not here: the single checks of `doctor` (`services.doctor`).
"""
