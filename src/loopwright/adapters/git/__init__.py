"""All git work on a project: workspaces, snapshots, candidates, landing, and the watch over the user's checkout.

Not here: which work lands and when (`engine.attempt`, `core.policy.landing`).
"""

from loopwright.adapters.git.branches.merging import DIFF_COMMAND
from loopwright.adapters.git.branches.quarantine import Quarantined
from loopwright.adapters.git.checkout.tripwires import stray
from loopwright.adapters.git.plumbing.runner import workspace_env
from loopwright.adapters.git.repository import GitRepository

__all__ = ["DIFF_COMMAND", "GitRepository", "Quarantined", "stray", "workspace_env"]
