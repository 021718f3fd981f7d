"""Find a real `claude` program for tests."""

import os
from importlib.util import find_spec
from pathlib import Path


def bundled_claude() -> Path | None:
    """Return the program that the claude-agent-sdk wheel carries, or None when it is not installed."""
    spec = find_spec("claude_agent_sdk")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        program = Path(folder) / "_bundled" / "claude"
        if program.is_file() and os.access(program, os.X_OK):
            return program
    return None


# Find a real `codex` program for tests.


def bundled_codex() -> Path | None:
    """Return the program that comes with the openai-codex wheel, or None when it is not installed."""
    spec = find_spec("codex_cli_bin")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        program = Path(folder) / "bin" / "codex"
        if program.is_file() and os.access(program, os.X_OK):
            return program
    return None
