"""Which installed dependencies two workspaces can share: those that the same command installs from the same files."""

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Final

from loopwright.core.values.globs import any_covers
from loopwright.core.values.policy import Policy

READY: Final = "LOOPWRIGHT_INSTALLED"
"""Set if dependencies were copied into a workspace, so that the setup command skips installing them.

The name must not be that of a setting: a Loopwright inside the workspace would read it.
"""

_DECIDING: Final = re.compile(
    r"(?:.*/)?(?:"
    r"package(?:-lock)?\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|pnpm-workspace\.yaml|bun\.lockb?|\.npmrc"
    r"|\.yarnrc(?:\.yml)?|\.nvmrc|\.node-version|\.tool-versions|\.python-version|rust-toolchain(?:\.toml)?"
    r"|pyproject\.toml|setup\.(?:py|cfg)|uv\.lock|poetry\.lock|pdm\.lock|pylock(?:\.[^/]+)?\.toml|Pipfile(?:\.lock)?"
    r"|environment\.ya?ml|(?:requirements|constraints)[^/]*\.(?:txt|in)|requirements/[^/]+"
    r"|(?:GNU)?[Mm]akefile|[Jj]ustfile|Taskfile\.ya?ml"
    r"|Cargo\.(?:toml|lock)|go\.(?:mod|sum|work|work\.sum)|Gemfile(?:\.lock)?|composer\.(?:json|lock)"
    r")"
)
"""The manifests and lock files of common package managers, and the runner scripts beside them, in any folder."""


def install_step(policy: Policy) -> str:
    """Return the shell text that installs dependencies unless they were copied; empty without such a command."""
    if not policy.dependencies:
        return ""
    return f'[ -n "${READY}" ] || {{\n{policy.dependencies}\n}}'


def is_deciding(path: str, policy: Policy) -> bool:
    """Return whether a file, relative to the project's folder, affects what the command installs."""
    return (
        _DECIDING.fullmatch(path) is not None
        or path in _words(policy.dependencies or "")
        or any_covers(policy.dependency_files, path)
    )


def dependency_key(
    policy: Policy, files: Mapping[str, str], environment: Mapping[str, str], machine: Iterable[str]
) -> str | None:
    """Return the cache key for the dependencies of a tree; None if no file in it determines them.

    `files` maps the path of every file of the project to the id of its content.
    """
    deciding = {path: content for path, content in files.items() if is_deciding(path, policy)}
    if not deciding:
        return None
    facts = [policy.dependencies, sorted(deciding.items()), environment.get("PATH", ""), *machine]
    return hashlib.sha256(json.dumps(facts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _words(command: str) -> frozenset[str]:
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        words = command.split()
    return frozenset(word.removeprefix("./") for word in words)
