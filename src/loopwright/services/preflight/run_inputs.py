"""Inputs that `run` and `plan check` read in the same way: the plan file, its changes, and the settings at its base."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loopwright.adapters import registry
from loopwright.adapters.git import GitRepository
from loopwright.adapters.git.plumbing.runner import user_env
from loopwright.adapters.sources.folders import meant
from loopwright.adapters.sources.text.reading import check_there, folder_of, most_specific, read, recognise
from loopwright.config.groups import ROUND_FLAGS
from loopwright.config.nearest import did_you_mean
from loopwright.core.rows.model import Loop, Plan, Project, Task
from loopwright.core.values.errors import BadConfig, BadPlan, Refused, UserError
from loopwright.core.values.states import TaskState
from loopwright.core.values.templates import FOLDER, ROLES, own_path, replaced
from loopwright.core.values.wording import to_type
from loopwright.engine.intake.source_checks import JUDGED, could_be_an_agents, followed
from loopwright.engine.intake.submit import Submission, taken_in_by
from loopwright.engine.rows.moves import need
from loopwright.ports import PlannedWork, Source, Store, Tx
from loopwright.prompts import packaged
from loopwright.services.homes.context import (
    Place,
    ProjectSettings,
    given_settings,
    project_file,
    settings_in_checkout,
)

# Check a project's own prompt templates, before an agent is paid to read them.


async def check_prompts(repository: GitRepository, sha: str, place: Place) -> None:
    """Raise `BadConfig` with every problem of a commit's templates, each with its file and line."""
    folder = "/".join(filter(None, (place.subfolder, FOLDER)))
    said = await repository.git.run(
        *("ls-tree", "-z", "--name-only", "--full-tree", f"{sha}:{folder}"),
        env=user_env(),
        cwd=place.root,
        ok=(0, 128),
    )
    names = [name for name in said.text.split("\0") if name] if not said.code else []
    if not names:
        return
    paths = {own_path(place.subfolder, role): role for role in ROLES}
    found = await repository.files_at(sha, list(paths))
    wrong = [_unknown(path) for name in names if (path := f"{folder}/{name}") not in found]
    for path, content in found.items():
        try:
            replaced(packaged(paths[path]), path, content)
        except BadConfig as problem:
            wrong.append(problem)
    if wrong:
        hints = dict.fromkeys(one.hint for one in wrong if one.hint)
        raise BadConfig("\n".join(map(str, wrong)), code="prompt_template_wrong", hint="; ".join(hints))


def _unknown(path: str) -> BadConfig:
    guess = did_you_mean(path.rpartition("/")[2].removesuffix(".md"), ROLES)
    files = ", ".join(f"{role}.md" for role in ROLES)
    return BadConfig(
        f"{path}: no agent reads this file{guess}",
        code="prompt_template_unknown",
        hint=f"rename or delete it; the templates are {files}",
    )


# The user's changes of a source while its plan is unfinished: which command applies them.


async def refuse_older_checks(store: Store, task: Task) -> None:
    """Refuse to try a task again with checks that its source has changed, if its plan does not follow the source."""
    plan, loop, project = await store.read(lambda tx: _around(tx, task))
    source = registry.source(loop.source_kind)
    kept = await store.read(lambda tx: could_be_an_agents(tx, plan))
    if (source.has_status or plan.policy.rounds.on) and not kept:
        return  # its changes are followed before anything starts
    try:
        work = read(source, Path(project.path) / loop.source_path)
    except BadPlan:
        return  # missing, or being edited: no change is known
    for now in work.tasks:
        if now.key == task.key and (now.acceptance, now.held_out) != (task.acceptance, task.held_out):
            raise Refused(
                f"{loop.source_path} has other checks for {task.key} now, and its plan keeps those that it began with",
                code="checks_changed",
                hint=f"{taken_in_by(plan, loop.source_path)}; or put them back in the file to try it by the old ones",
            )


def told_of_change(tx: Tx, asked: Submission, plan: Plan) -> tuple[str, ...]:
    """Return which failed tasks of a changed source apply the change only when they are tried again."""
    if plan.source_sha256 == asked.work.sha256:
        return ()
    failed = tx.find(Task, plan_id=plan.id, status=TaskState.ERROR, order_by=("position",))
    items = {item.key: item for item in asked.work.tasks}
    told = []
    for task in failed:
        item = items.get(task.key)
        new = followed(tx, plan, task, item, JUDGED) if item is not None else None
        if new is not None and new.against:
            told.append(f"{asked.source_path} has other checks for {task.key} now, and {new.against}")
        elif new is not None and new.kept:
            told.append(
                f"{asked.source_path} has other checks for {task.key} now, which an agent without a sandbox could have "
                f"written; if you did: {taken_in_by(plan, asked.source_path)}"
            )
        else:
            told.append(
                f"{asked.source_path} changed; {task.key} has failed, and `{to_type('retry', task.key)}` "
                "tries it as it is written now"
            )
    return tuple(told)


def _around(tx: Tx, task: Task) -> tuple[Plan, Loop, Project]:
    plan = need(tx.get(Plan, task.plan_id), "the plan")
    return (
        plan,
        need(tx.get(Loop, plan.loop_id), "the loop"),
        need(tx.get(Project, plan.project_id), "the project"),
    )


# Whether the settings of rounds and attempts fit the kind of work.


def check_rounds(flags: Mapping[str, Any], work: PlannedWork, kind: str) -> None:
    """Refuse flags that would change nothing for this work."""
    given = [name for key, name in ROUND_FLAGS.items() if flags.get(key) is not None]
    if given and not work.rounds:
        raise Refused(
            f"{given[0]} is for a loop over one prompt, and this is a source of the kind {kind}",
            code="rounds_need_a_prompt",
            hint="leave it out, or put the work into a PROMPT.md",
        )
    if work.rounds and flags.get("max_attempts") is not None:
        raise Refused(
            "a loop over one prompt has rounds instead of attempts",
            code="prompt_has_no_attempts",
            hint="say --max-rounds",
        )


def runs_in_rounds(path: Path, kind: str | None = None) -> bool:
    """Return whether a path means an orchestrator folder with roles, whose roadmap is done in rounds."""
    if kind not in (None, "orchestrator") or not path.exists():
        return False
    place = meant_path(path, kind)
    has_roles = any((place / name).exists() for name in ("role-contract.md", "roles"))
    return has_roles and (place / "state.json").is_file()


def named(text: str) -> Path:
    """Return the path that the user typed; refuse an empty one, such as a variable that is not set."""
    if not text.strip():
        raise UserError(
            "the name of the plan is empty",
            code="plan_name_empty",
            hint="name a file with tasks, such as plan.yaml",
        )
    return Path(text)


def meant_path(path: Path, kind: str | None = None) -> Path:
    """Return the source that a path means: a folder means the only source in it, at its canonical path."""
    place = meant(path, registry.sources(), kind)
    sources = [registry.source(kind)] if kind else registry.sources()
    found = most_specific([one for one in sources if one.recognises(place)])
    return found[0].canonical(place) if len(found) == 1 else place


def read_plan(path: Path, kind: str | None = None) -> tuple[Source, PlannedWork]:
    """Return the reader of a source, and its work, or raise `BadPlan`."""
    check_there(path)
    source = registry.source(kind) if kind else recognise(path, registry.sources())
    try:
        return source, read(source, path)
    except BadPlan as wrong:
        wrong.kind = source.kind
        raise


async def tracked_files(
    repository: GitRepository, sha: str, source: Source, path: Path, root: Path
) -> tuple[str, ...]:
    """Return the files of a source that a commit has, relative to the repository; none if its format has no status."""
    if not source.has_status or source.has_program(path):
        return ()
    folder = os.path.relpath(folder_of(path.resolve()), root)
    files = source.files(path)
    told = source.status_files(files)
    names = {os.path.normpath(f"{folder}/{name}"): name for name in files}
    found = await repository.files_at(sha, [path for path in names if not path.startswith("..")])
    if not any(names[path] in told for path in found):
        return ()  # what git tracks of it has no place for status
    more = [os.path.normpath(f"{folder}/{name}") for name in source.created(files)]
    return tuple(dict.fromkeys((*found, *more)))


async def project_settings(
    repository: GitRepository, sha: str, place: Place, given: Path | None = None
) -> ProjectSettings:
    """Return the project's settings: from the file that the user names, else the commit, else the checkout."""
    if given is not None:
        return given_settings(given)
    file = project_file(place)
    text = await repository.file_at(sha, file)
    if text is not None:
        return ProjectSettings(text=text, file=file, committed=True)
    return settings_in_checkout(place)
