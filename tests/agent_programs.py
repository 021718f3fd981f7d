"""Finds the agent programs that `make test-agents` has installed beside the tests."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".agents" / "node_modules"

PLACES = {
    "gemini": ".bin/gemini",
    # Its own package starts a postinstall; this one is the program alone, named by platform.
    "goose": "@aaif/goose-binary-*/bin/goose",
    "opencode": ".bin/opencode",
}


def installed(name: str) -> Path | None:
    """Return the program of this name, or None when it is not installed."""
    return next(FOLDER.glob(PLACES[name]), None)
