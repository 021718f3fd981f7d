"""The daemon: workers for every project, and the HTTP interface to the services.

Not here: rules. Every endpoint calls `services` and only translates between HTTP and values.
"""
