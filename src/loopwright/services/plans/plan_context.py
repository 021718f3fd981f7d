"""Collect facts about the place where a plan would run, for its evaluation: files, programs, and earlier work."""

import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from loopwright.adapters.git import GitRepository
from loopwright.adapters.git.plumbing.runner import user_env
from loopwright.config.resolve import Settings
from loopwright.core.plans.evaluating import Finding
from loopwright.core.plans.plan_context import (
    FAILED_BEFORE,
    MAKEFILES,
    Surroundings,
    likeness,
    look_around,
)
from loopwright.core.rows.model import Plan, Project, Task, VerdictRecord
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import TaskState
from loopwright.engine.rows.source_marks import SETTLED
from loopwright.ports import PlannedWork, Store, Tx
from loopwright.services.homes.caller import environment
from loopwright.services.homes.context import Place


async def seen_around(
    repository: GitRepository,
    sha: str,
    place: Place,
    settings: Settings,
    work: PlannedWork,
    store: Store | None,
) -> tuple[Finding, ...]:
    """Return findings about a plan in its context; nothing runs.

    Without a store, there is no earlier work.
    """
    files = await _files(repository, sha, place)
    makefile = next((name for name in MAKEFILES if name in files), None)
    gates = work.gates if work.gates is not None else settings.gates
    policy = settings.policy()
    failed: dict[str, str] = {}
    done: dict[tuple[str, ...], str] = {}
    if store is not None:
        tree = await repository.tree_of(sha)
        failed, done = await store.read(lambda tx: _before(tx, place, tree, work))
    around = Surroundings(
        files=files,
        makefile=await _text(repository, sha, place, makefile) if makefile else None,
        lies_about=lambda name: (place.root / place.subfolder / name).is_file(),
        has_program=cache(lambda name: shutil.which(name, path=environment().get("PATH")) is not None),
        brings=bool(policy.dependencies or policy.setup or policy.copy_files),
        elsewhere=settings.values.database is not None,
        failed_before=failed,
        done=done,
    )
    settled = {task.key for task in work.tasks if task.mark in SETTLED}
    documents = work.doc_sync.documents if work.doc_sync is not None else ()
    permitted = {f"task {task.key}": task.may_change for task in work.tasks if task.key not in settled}
    return tuple(
        look_around(
            work.tasks,
            gates,
            around,
            settled=settled,
            documents=documents,
            may_change={**permitted, "the setting": policy.may_change},
            installs=tuple(filter(None, (policy.dependencies, policy.setup))),
        )
    )


def with_base(seen: Sequence[Finding], on_base: Sequence[Finding] | None) -> tuple[Finding, ...]:
    """Add what is known about the checks on the base commit, if anything; it replaces older information."""
    if on_base is None:
        return tuple(seen)
    return (*(one for one in seen if one.check != FAILED_BEFORE), *on_base)


async def _files(repository: GitRepository, sha: str, place: Place) -> frozenset[str]:
    where = f"{sha}:{place.subfolder}" if place.subfolder else sha
    said = await repository.git.run(
        "ls-tree",
        "-r",
        "-z",
        "--name-only",
        "--full-tree",
        where,
        env=user_env(),
        cwd=place.root,
        ok=(0, 128),
    )
    return frozenset(said.text.split("\0")) - {""}


async def _text(repository: GitRepository, sha: str, place: Place, name: str) -> str | None:
    return await repository.file_at(sha, (Path(place.subfolder) / name).as_posix())


def _before(
    tx: Tx, place: Place, tree: str, work: PlannedWork
) -> tuple[dict[str, str], dict[tuple[str, ...], str]]:
    """Return which commands failed on a tree, by their newest result, and the finished tasks of the project's plans."""
    projects = tx.find(Project, path=str(place.root), subfolder=place.subfolder, limit=1)
    if not projects:
        return {}, {}
    plans = {one.id: one for one in tx.find(Plan, project_id=projects[0].id)}
    failed: dict[str, str] = {}
    for record in tx.find(VerdictRecord, tree=tree, order_by=("created_at",)):
        when = f"{record.created_at:%Y-%m-%d %H:%M} UTC, {short_id(record.plan_id)}"
        for one in record.verdict.commands if record.plan_id in plans else ():
            failed.pop(one.command, None)
            if one.exit_code != 0:
                failed[one.command] = when
    same = tx.find(Task, status=TaskState.COMPLETE, title=sorted({task.title for task in work.tasks}))
    done = {
        likeness(task): f"{short_id(task.plan_id)}, {(task.landed_sha or 'no change')[:9]}"
        for task in same
        if task.plan_id in plans
    }
    return failed, done
