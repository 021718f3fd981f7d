"""Tokens for callers over the network: make, list, revoke and look up.

Not here: reading a token from a request (`server.guard`).
"""
