"""Install a project's dependencies once for all workspaces that need the same ones."""

import logging
import platform
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from loopwright.core.gates.dependencies import dependency_key
from loopwright.core.policy.retry import Failed
from loopwright.core.rows.model import Plan, Project
from loopwright.engine.rows.world import World
from loopwright.ports import Repository

log = logging.getLogger(__name__)


async def lay_dependencies(
    world: World, repository: Repository, project: Project, plan: Plan, sha: str, tree: Path
) -> bool:
    """Copy the dependencies of a commit into its tree, if they are cached; return whether they are in it now."""
    key = await _key(world, repository, project, plan, sha)
    return key is not None and await _laid(world, repository, plan, key, sha, tree)


async def install_dependencies(
    world: World,
    repository: Repository,
    project: Project,
    plan: Plan,
    sha: str,
    tree: Path,
    *,
    fresh: bool,
    install: Callable[[], Awaitable[Failed | None]],
) -> bool | Failed:
    """Copy the dependencies of a commit into its tree, or install them there and cache them for other trees.

    Only trees of the plan branch fill the cache: work that has not landed must not affect others. And only a
    `fresh` tree: elsewhere the command's files cannot be told from existing ones. Return whether they are in
    the tree now, or how installing them failed.
    """
    key = await _key(world, repository, project, plan, sha)
    if key is None or world.dependencies is None:
        return False
    async with world.dependencies.filling(key):
        if await _laid(world, repository, plan, key, sha, tree):
            return True
        if not fresh or not await _is_landed(repository, plan, sha):
            return False
        tracked = (await repository.listed(sha)).keys()
        before = await world.dependencies.untracked(tree, tracked)
        failed = await install()
        if failed is not None:
            return failed
        made = await world.dependencies.untracked(tree, tracked) - before
        try:
            if made:
                await world.dependencies.keep(plan.project_id, key, tree, made)
        except OSError as trouble:
            log.warning("dependencies were not kept", extra={"plan": plan.id, "why": str(trouble)})
        return True


async def _is_landed(repository: Repository, plan: Plan, sha: str) -> bool:
    return sha == plan.base_sha or await repository.is_ancestor(sha, await repository.tip(plan.branch))


async def _laid(world: World, repository: Repository, plan: Plan, key: str, sha: str, tree: Path) -> bool:
    if world.dependencies is None or not world.dependencies.has(plan.project_id, key):
        return False
    try:
        await world.dependencies.lay(plan.project_id, key, tree, (await repository.listed(sha)).keys())
    except OSError as trouble:
        # Then they are installed, as without a cache.
        log.warning("dependencies were not copied", extra={"plan": plan.id, "why": str(trouble)})
        return False
    return True


async def _key(world: World, repository: Repository, project: Project, plan: Plan, sha: str) -> str | None:
    if world.dependencies is None or not plan.policy.dependencies:
        return None
    top = f"{project.subfolder}/" if project.subfolder else ""
    listed = await repository.listed(sha)
    files = {path.removeprefix(top): entry.id for path, entry in listed.items() if path.startswith(top)}
    sandbox = world.sandbox()
    machine = (sys.platform, platform.machine(), sandbox.level.value, str(sandbox.made_with))
    return dependency_key(plan.policy, files, world.environment(plan, None, {}), machine)
