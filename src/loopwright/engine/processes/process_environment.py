"""The environment of a process that Loopwright starts: ports, names, caches."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final
from zlib import crc32

from loopwright.core.rows.model import Attempt, Plan, Project
from loopwright.core.values.containment import Containment
from loopwright.core.values.states import LIVE_ATTEMPT, AttemptState
from loopwright.engine.rows.world import World
from loopwright.ports import Tx

_FIRST_PORT: Final = 20_000
_PORT_COUNT: Final = 10
"""How many ports each attempt has, so that test servers do not collide."""
_ATTEMPT_RANGES: Final = 500
"""More than any host needs: the ranges above belong to the gates of whole plans."""
_HIGHEST_PORT: Final = 32_000
"""Below the ports that systems assign by themselves."""

CACHES: Final[Mapping[str, str]] = {
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "npm_config_cache": "npm",
    "YARN_CACHE_FOLDER": "yarn",
    "GOCACHE": "go-build",
    "GOMODCACHE": "go-mod",
}
"""Tools that would otherwise fill a cache per workspace, with the folder that they share."""

GATE_CACHES: Final[Mapping[str, str]] = {"GOCACHE": "go-build", "MYPY_CACHE_DIR": "mypy"}
"""Compiler caches whose content affects what a gate sees: a gate shares none of them with agents."""


def gate_cache_values(cache: Path) -> dict[str, str]:
    """Return the variables with which compilers use a folder as their cache."""
    return {name: str(cache / folder) for name, folder in GATE_CACHES.items()}


def private_cache(tree: Path) -> Path:
    """Return the folder of the compiler caches of the gate in this tree alone; it is removed with the tree."""
    # No test runner or linter reads `.git`.
    return tree / ".git" / "loopwright-cache"


def cache_folder(world: World, plan: Plan) -> Path:
    """Return the folder of the caches that runs share: a sandboxed run shares them with its own project only."""
    contained = world.sandbox().level is not Containment.NONE
    return world.paths.cache() / plan.project_id if contained else world.paths.cache()


def attempt_values(world: World, plan: Plan, attempt: Attempt | None, *, key: str = "") -> dict[str, str]:
    """Return the variables that keep parallel attempts apart; `key` is the user's name for the task."""
    values: dict[str, str] = {}
    if world.caches:
        values |= {name: str(cache_folder(world, plan) / folder) for name, folder in CACHES.items()}
    values["LOOPWRIGHT_PLAN"] = plan.id
    if attempt is None:
        values["COMPOSE_PROJECT_NAME"] = f"loopwright-{plan.id[-12:]}"
        port_base: int | None = _plan_port_base(plan)
    else:
        values["LOOPWRIGHT_TASK"] = attempt.task_id
        if key:
            values["LOOPWRIGHT_TASK_NAME"] = key
        values["LOOPWRIGHT_ATTEMPT"] = attempt.id
        values["COMPOSE_PROJECT_NAME"] = f"loopwright-{attempt.id[-12:]}"
        port_base = attempt.port_base
    if port_base is not None:
        values["LOOPWRIGHT_PORT_BASE"] = str(port_base)
        values["LOOPWRIGHT_PORT_COUNT"] = str(_PORT_COUNT)
    return values


def _plan_port_base(plan: Plan) -> int:
    """Return the ports of a plan's own gate: far above those of attempts, and most likely unique to the plan."""
    lowest = _FIRST_PORT + _ATTEMPT_RANGES * _PORT_COUNT
    ranges = (_HIGHEST_PORT - lowest) // _PORT_COUNT
    return lowest + crc32(plan.id.encode()) % ranges * _PORT_COUNT


def files_to_copy(project: Project, plan: Plan) -> tuple[str, ...]:
    """Return the patterns of untracked files that the plan needs, relative to the top of the repository."""
    return below(project.subfolder, plan.policy.copy_files)


def below(folder: str, patterns: Sequence[str]) -> tuple[str, ...]:
    """Return patterns of a folder, relative to the top of its repository."""
    # The folder's name is literal, whatever characters it has.
    literal = re.sub(r"([*?\[\\])", r"\\\1", folder)
    return tuple(str(PurePosixPath(literal) / pattern) for pattern in patterns)


def free_port_base(tx: Tx, host_id: str) -> int:
    """Return the lowest port range that no living attempt on this host has."""
    # A queued attempt has no ports, and there may be thousands of them.
    live = tx.find(Attempt, host_id=host_id, state=LIVE_ATTEMPT - {AttemptState.QUEUED})
    taken = {attempt.port_base for attempt in live}
    base = _FIRST_PORT
    while base in taken:
        base += _PORT_COUNT
    return base
