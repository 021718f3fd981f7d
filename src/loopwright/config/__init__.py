"""Typed settings: files, environment and flags combined, each value with its origin.

`settings` declares every setting, `groups` those with a common prefix, `kinds` the types of values. `layers` reads each
origin, `resolve` combines them, `publish` makes tables and schemas. `home` finds the home and the user's own file.

Not here: the settings that a plan keeps while it runs (`core.values.policy`).
"""
