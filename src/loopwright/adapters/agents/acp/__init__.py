"""Agents that speak the Agent Client Protocol: one codec, and a profile for each kind of agent.

Not here: agents with their own protocol (`adapters.agents.claude`, `adapters.agents.codex`).
"""
