"""The command table, exit codes, safe output, error messages, and flags that several commands share.

Not here: single commands (`cli.commands`) and single screens (`cli.screens`).
"""
