"""The names of forges' tokens."""

from typing import Final

GITHUB_TOKENS: Final = ("GITHUB_TOKEN", "GH_TOKEN")
GITLAB_TOKENS: Final = ("GITLAB_TOKEN",)
FORGE_TOKENS: Final = (*GITHUB_TOKENS, *GITLAB_TOKENS)
"""Variables that may have the token of a forge."""
