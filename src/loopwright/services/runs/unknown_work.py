"""Find work in a repository that the home does not know: after its database was lost, or the repository was moved."""

import json
import math
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.git import GitRepository
from loopwright.adapters.git.plumbing.runner import user_env
from loopwright.adapters.home.statefiles import state_files
from loopwright.app import Home
from loopwright.core.rows.model import RESTORED, Cursor, Plan, Project
from loopwright.core.values.errors import Refused
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import ENDED_PLAN
from loopwright.core.values.wording import counted, to_type
from loopwright.engine.intake.evaluation import to_do
from loopwright.engine.intake.submit import Submission, last_plan
from loopwright.engine.plans.row_rebuild import move_project
from loopwright.engine.rows.ref_names import commit_subject
from loopwright.ports import Tx
from loopwright.services.homes.caller import current_folder
from loopwright.services.runs.last_plan import is_ahead

IMPORT: Final = "loopwright projects import"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Work of a source that the rows do not have."""

    what: str
    """The work, in words."""
    ways: tuple[str, ...]
    """What to type instead of `--new`."""
    importable: bool = True


async def note_move(home: Home, repository: GitRepository, root: Path) -> str:
    """Recognise a moved repository; return its old path, empty if it was not moved.

    It is the project whose folder is gone and whose plan branches or pins this repository has. A clone has
    none.
    """
    gone = await home.store.read(lambda tx: _gone(tx, root))
    if not gone:
        return ""
    ours = ("refs/heads/loopwright/", "refs/loopwright/")
    said = await repository.git.run("for-each-ref", "--format=%(refname)", *ours, env=user_env(), cwd=root)
    refs = said.text.splitlines()
    found = {
        path: projects
        for path, (projects, names) in gone.items()
        if any(ref.startswith(name) for ref in refs for name in names)
    }
    if len(found) != 1:
        return ""  # none, or more than one
    [(was, projects)] = found.items()

    def move(tx: Tx) -> None:
        for project in projects:
            move_project(tx, project, root)

    await home.store.transact("project.moved", move)
    return was


def _gone(tx: Tx, root: Path) -> dict[str, tuple[list[Project], set[str]]]:
    """Return the projects with missing folders, by path, with the names of their plans' refs."""
    found: dict[str, tuple[list[Project], set[str]]] = {}
    if tx.find(Project, path=str(root), limit=1):
        return found
    for project in tx.find(Project):
        if not Path(project.path).exists():
            projects, names = found.setdefault(project.path, ([], set()))
            projects.append(project)
            for plan in tx.find(Plan, project_id=project.id):
                names |= {f"refs/heads/{plan.branch}", f"refs/loopwright/attempts/{plan.id}/"}
    return found


async def unknown_work(home: Home, repository: GitRepository, asked: Submission) -> Unknown | None:
    """Return exported work of a source, or work on a branch, that a new plan would do again."""
    if asked.new:
        return None
    last = await home.store.read(lambda tx: last_plan(tx, asked))
    for document in _exported(asked.root, asked.source_path, last):
        found = await home.store.read(lambda tx, plan_id=document["id"]: _owner(tx, plan_id))  # type: ignore[misc]
        if last is not None:
            # The next worker brings a restored backup up to date.
            if document["event"] > await home.store.read(_last_event):
                what = f"the database is older than what the state files have of plan {short_id(last.id)}"
                return Unknown(what=what, ways=(f"`{IMPORT}` brings it up to date",))
            continue
        ended = document["status"] in {state.value for state in ENDED_PLAN}
        if ended and not await is_ahead(repository, asked.root, document["branch"], asked.base.sha):
            continue
        plan = f"plan {short_id(document['id'])} of {asked.source_path} ({document['status']})"
        if found is not None:
            what = f"{plan} belongs to {found.path}, of which this repository is a copy"
            return Unknown(
                what=what, ways=(f"`cd {shlex.quote(found.path)}` and run it there",), importable=False
            )
        what = f"{plan} is in the state files, and this home does not know it"
        return Unknown(what=what, ways=(f"`{IMPORT}` takes it up",))
    return None if last is not None else await _on_a_branch(home, repository, asked)


def _exported(root: Path, source_path: str, last: Plan | None) -> list[dict[str, Any]]:
    """Return the exported last plan of a source, or all if the rows have none."""
    names = state_files(root, "plans", f"{last.id}.json" if last is not None else "plan_*.json")
    found = []
    for path in names:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            facts = {name: document[name] for name in ("id", "status", "branch", "created_at")}
            if document["loop"]["source_path"] == source_path:
                found.append(facts | {"event": int(document.get("event", 0))})
        except (OSError, ValueError, KeyError, TypeError):
            continue  # not ours, or damaged: `projects import` names it
    return sorted(found, key=lambda one: str(one["created_at"]), reverse=True)


def _last_event(tx: Tx) -> float:
    return math.inf if tx.get(Cursor, RESTORED) is not None else tx.last_event()


def _owner(tx: Tx, plan_id: str) -> Project | None:
    plan = tx.get(Plan, plan_id)
    return tx.get(Project, plan.project_id) if plan is not None else None


async def _on_a_branch(home: Home, repository: GitRepository, asked: Submission) -> Unknown | None:
    """Return a plan branch with landed tasks of this source and without a row."""
    form = ("--format=%(refname:short) %(objectname)", f"--no-merged={asked.base.sha}")
    said = await repository.git.run(
        "for-each-ref", *form, "refs/heads/loopwright/", env=user_env(), cwd=asked.root
    )
    listed = dict(line.rsplit(" ", 1) for line in said.text.splitlines())
    there = {name: sha for name, sha in listed.items() if name.endswith("/main")}
    known = await home.store.read(lambda tx: {one.branch for one in tx.find(Plan, branch=list(there))})
    wanted = {commit_subject(task) for task in to_do(asked.work)}
    for branch in sorted(there.keys() - known):
        steps = await repository.steps(there[branch], since=asked.base.sha)
        landed = {one.subject for one in steps if one.tasks} & wanted
        if landed:
            count = counted(len(landed), "task")
            what = f"{count} of {asked.source_path} landed on {branch}, and this home does not know that plan"
            ways = (
                f"`git merge {branch}` brings that work in",
                f"`{to_type('run', _typed(asked), base=branch)}` starts from it",
            )
            return Unknown(what=what, ways=ways, importable=False)
    return None


def _typed(asked: Submission) -> str:
    return os.path.relpath(asked.root / asked.source_path, current_folder())


class UnknownWork(Refused):
    """The repository has work of this source that the home does not know; a new plan would do it again."""

    def __init__(self, found: Unknown, asked: Submission) -> None:
        anew = f"`{to_type('run', _typed(asked), new=True)}` starts a new plan anyway"
        super().__init__(
            f"{found.what}; a new plan would do that work again",
            code="work_unknown",
            hint="; or ".join([*found.ways, anew]),
        )
        self.found = found
