"""The MCP server: a few tools with which other agents drive loops.

Each tool sends requests to the HTTP API, so tokens, scopes and errors are the same. Not here: rules.
"""
