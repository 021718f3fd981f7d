"""Find the specifications and documents that a source names, and their paths in the workspace for prompts."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from loopwright.adapters.git import GitRepository
from loopwright.adapters.git.plumbing.runner import user_env
from loopwright.adapters.sources.text.reading import folder_of
from loopwright.ports import PlannedWork, Specs
from loopwright.services.homes.context import Place

# Find the documents beside a source, and their paths in the workspace for prompts.


async def with_documents(
    repository: GitRepository, sha: str, place: Place, plan: Path, work: PlannedWork, copied: Sequence[str]
) -> tuple[PlannedWork, tuple[str, ...]]:
    """Return work whose documents are paths in a workspace, and a note about those that are missing there."""
    if not work.documents:
        return work, ()
    project = (place.root / place.subfolder).resolve()
    found = {
        os.path.relpath(path, place.root.resolve()): path
        for one in work.documents
        if (path := (folder_of(plan.resolve()) / one).resolve()).is_relative_to(place.root.resolve())
    }
    committed = await repository.files_at(sha, list(found))
    there = [
        os.path.relpath(path, project)
        for name, path in found.items()
        if name in committed or any(path.is_relative_to(project / one) for one in copied)
    ]
    missing = [name for name in found if name not in committed]
    missing = [name for name in missing if os.path.relpath(found[name], project) not in there]
    if not missing:
        return replace(work, documents=tuple(there)), ()
    many = len(missing) > 1
    names = f"{missing[0]} and {len(missing) - 1} more are" if many else f"{missing[0]} is"
    note = f"{names} not in {sha[:7]}, so agents cannot read {'them' if many else 'it'}: commit, or use copy_files"
    return replace(work, documents=tuple(there)), (note,)


async def with_specs(
    repository: GitRepository, sha: str, place: Place, plan: Path, work: PlannedWork, copied: Sequence[str]
) -> tuple[PlannedWork, tuple[str, ...]]:
    """Return work whose prompts name the folder of its specifications, and notes about it.

    A workspace has the files of the base commit, and those that `copied` names; prompts never name other
    files.
    """
    if work.specs is None:
        return work, ()
    folder = specs_folder(work.specs, plan, place.root)
    if folder is None:
        text = f"{work.specs.named_in}: specs_dir: there is no folder {work.specs.folder}"
        return work, (f"{text}, so agents get no specifications",)
    project = place.root / place.subfolder
    name = folder.relative_to(place.root).as_posix()
    if not await _is_committed(repository, sha, place.root, name) and not any(
        folder.is_relative_to(project / one) for one in copied
    ):
        text = f"{work.specs.named_in}: specs_dir: {name} is not in {sha[:7]}"
        return work, (f"{text}, so agents cannot read it: commit it, or name it in copy_files",)
    told = f"The specifications are in {os.path.relpath(folder, project)}: read what concerns your task."
    return replace(work, context="\n\n".join(filter(None, (work.context, told)))), ()


def specs_folder(specs: Specs, plan: Path, root: Path) -> Path | None:
    """Return the folder of the specifications; None if the repository does not have it.

    It is relative to the file that names it. In an older configuration it is relative to the top of the
    project.
    """
    beside = (folder_of(plan.resolve()) / specs.named_in).resolve().parent
    found = ((above / specs.folder).resolve() for above in _up_to(beside, root))
    return next((one for one in found if one.is_dir() and one.is_relative_to(root)), None)


def _up_to(folder: Path, root: Path) -> Iterator[Path]:
    yield folder
    if folder.is_relative_to(root):
        yield from (above for above in folder.parents if above.is_relative_to(root))


async def _is_committed(repository: GitRepository, sha: str, root: Path, name: str) -> bool:
    if name == ".":
        return True
    asked = ("cat-file", "-t", f"{sha}:{name}")
    return (await repository.git.run(*asked, env=user_env(), cwd=root, ok=(0, 128))).text == "tree"
