"""The possible folders for a project's state files, relative to its repository."""

from typing import Final, Literal, get_args

StateFolder = Literal[".loopwright", ".claude/state"]
STATE_FOLDERS: Final[tuple[StateFolder, ...]] = get_args(StateFolder)
"""The possible folders of the files: the first is the default."""
DEFAULT_FOLDER: Final[StateFolder] = ".loopwright"
PACKETS: Final = "inspection-packets"


def is_state_path(path: str) -> bool:
    """Return whether a normalised path is a state folder or inside one, at any depth of the repository."""
    return any(one in path and f"/{one}/" in f"/{path}/" for one in STATE_FOLDERS)
