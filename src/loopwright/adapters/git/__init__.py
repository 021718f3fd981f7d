"""All git work on a project: workspaces, snapshots, candidates, landing, and the watch over the user's checkout."""

from loopwright.adapters.git.environment import workspace_env
from loopwright.adapters.git.merging import DIFF_COMMAND
from loopwright.adapters.git.quarantine import Quarantined
from loopwright.adapters.git.repository import GitRepository
from loopwright.adapters.git.tripwires import stray

__all__ = ["DIFF_COMMAND", "GitRepository", "Quarantined", "stray", "workspace_env"]
