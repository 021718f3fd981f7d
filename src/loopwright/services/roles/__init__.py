"""The manager and the orchestrator: agents that change loops with the MCP tools, in the daemon.

Not here: what the tools do and how it is recorded (`services.remote.actions`).
"""
