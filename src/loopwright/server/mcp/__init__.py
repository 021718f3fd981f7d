"""The MCP server: a few tools with which other agents drive loops.

Each tool sends requests to the HTTP API, so tokens, scopes and errors are the same. Not here: rules.
"""

from loopwright.core.values.errors import UserError


def not_installed() -> UserError:
    """Return the error for missing packages."""
    return UserError(
        "the MCP server is not installed", code="mcp_not_installed", hint="pip install 'loopwright[mcp]'"
    )
