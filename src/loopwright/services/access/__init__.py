"""Tokens for callers over the network: create, list, revoke and look up.

Not here: reading a token from a request (`server.guard`).
"""
