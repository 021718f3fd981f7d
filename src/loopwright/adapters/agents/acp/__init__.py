"""Agents that speak the Agent Client Protocol: one codec, and a profile for each kind of agent."""
