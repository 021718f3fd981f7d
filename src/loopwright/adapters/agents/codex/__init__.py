"""Codex: its app server as a conversation, and `codex exec` for where that cannot be had."""
