"""The environment that git processes get: ours to the last variable, so nothing from outside bends a command."""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

OVERRIDES: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.filesRefLockTimeout=1000",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "log.showSignature=false",
    "submodule.recurse=false",
    "advice.addEmbeddedRepo=false",
    # Only local paths that we name ourselves are ever fetched from: no network, no helper programs.
    "protocol.allow=never",
    "protocol.file.allow=always",
)
"""Settings that win over every configuration file."""

_KEPT: Final = ("HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME")
_KEPT_FOR_USER: Final = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")


def config_flags() -> tuple[str, ...]:
    """Return the overrides as git's own command line takes them."""
    return tuple(part for setting in OVERRIDES for part in ("-c", setting))


@cache
def _absolute(path: str) -> str:
    """Leave out relative entries: they would find programs in the folder that git runs in, perhaps an agent's."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if Path(entry).is_absolute())


def _plain() -> dict[str, str]:
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    env["PATH"] = _absolute(os.environ.get("PATH", os.defpath))
    env |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "cat"}
    env["GIT_NO_REPLACE_OBJECTS"] = "1"
    return env


def user_env() -> dict[str, str]:
    """Return the environment for the user's own repository: their configuration, our overrides."""
    return _plain() | {name: os.environ[name] for name in _KEPT_FOR_USER if name in os.environ}


def own_env(git_dir: Path, *, work_tree: Path | None = None, index: Path | None = None) -> dict[str, str]:
    """Return the environment for a git dir that we wrote: no configuration but its own."""
    env = _plain() | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_DIR": str(git_dir),
        "GIT_LFS_SKIP_DOWNLOAD_ERRORS": "1",
    }
    if work_tree is not None:
        env["GIT_WORK_TREE"] = str(work_tree)
    if index is not None:
        env["GIT_INDEX_FILE"] = str(index)
    return env


def workspace_env(path: Path) -> Mapping[str, str]:
    """Return the variables for work in a workspace, so that git never looks above it."""
    parents = dict.fromkeys((str(path.parent), str(path.parent.resolve())))
    return {
        "GIT_CEILING_DIRECTORIES": os.pathsep.join(parents),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "true",
        "GIT_SEQUENCE_EDITOR": "true",
    }
