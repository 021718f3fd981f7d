"""The public API: every use case as a typed method, for one repository.

REST, MCP and pages call this too. Not here: the use cases themselves, which are in the other packages of
`services`.
"""
